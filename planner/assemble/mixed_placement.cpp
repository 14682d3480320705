#include "planner/assemble/mixed_placement.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "planner/assemble/idle_gaps.hpp"
#include "planner/problem/versions.hpp"

namespace stowage {
namespace {

/// The placement that an operation or an item is taken from; `both`: operations of both touch the
/// item.
enum class Source : std::uint8_t { agreed, first, second, both };

class PlacementMixer {
 public:
  PlacementMixer(const ResidencyProblem& problem, const Placement& first, const Placement& second)
      : problem_(problem), first_(first), second_(second), mixed_(first) {}

  std::optional<Placement> run(const Mixture& mixture) && {
    if (!choose_operations(mixture)) return std::nullopt;
    for (std::size_t i = 0; i < problem_.items.size(); ++i) place_item(i);
    if (!evaluate(problem_, mixed_).consistent) return std::nullopt;
    return std::move(mixed_);
  }

 private:
  [[nodiscard]] bool differs(std::size_t operation) const {
    return first_.device[operation] != second_.device[operation];
  }

  /// False: the two placements agree on all operations.
  bool choose_operations(const Mixture& mixture) {
    source_.assign(problem_.operations.size(), Source::agreed);
    double all = 0, before = 0;
    for (std::size_t t = 0; t < source_.size(); ++t) {
      if (differs(t)) all += problem_.operations[t].cpu_seconds;
    }
    if (all <= 0) return false;
    for (std::size_t t = 0; t < source_.size(); ++t) {
      if (!differs(t)) continue;
      const double part = std::floor(before / all * mixture.parts);
      before += problem_.operations[t].cpu_seconds;
      const bool from_first =
          std::floor((part + 1) * mixture.share) > std::floor(part * mixture.share);
      source_[t] = from_first ? Source::first : Source::second;
      if (from_first) continue;
      mixed_.device[t] = second_.device[t];
      mixed_.engine[t] = second_.engine[t];
    }
    return true;
  }

  [[nodiscard]] Source source_of(const Item& item) const {
    Source source = Source::agreed;
    for (const Touch& touch : item.touches) {
      const Source other = source_[static_cast<std::size_t>(touch.step)];
      if (other == Source::agreed) continue;
      if (source != Source::agreed && source != other) return Source::both;
      source = other;
    }
    return source;
  }

  void place_item(std::size_t i) {
    const Source source = source_of(problem_.items[i]);
    if (source == Source::first || source == Source::agreed) return;
    if (source == Source::second) {
      mixed_.on_gpu[i] = second_.on_gpu[i];
      mixed_.resident[i] = second_.resident[i];
      // The first placement has filled the memory, so items that the second keeps on the GPU for
      // good are streamed.
      const auto wrapping = static_cast<std::int32_t>(problem_.items[i].touches.size()) - 1;
      if (problem_.items[i].wraps && gap_pin(problem_.items[i], wrapping) != GapPin::resident) {
        mixed_.resident[i].back() = false;
      }
      return;
    }
    const std::vector<Touch>& touches = problem_.items[i].touches;
    const auto on_cpu = [&](std::size_t touch) {
      return mixed_.device[static_cast<std::size_t>(touches[touch].step)] == Device::cpu;
    };
    const auto may_be_there = [&](std::size_t touch) {
      return !on_cpu(touch) ||
             (!touches[touch].writes && first_.on_gpu[i][touch] && second_.on_gpu[i][touch]);
    };
    std::vector<bool>& resident = mixed_.resident[i];
    std::vector<bool>& on_gpu = mixed_.on_gpu[i];
    for (std::size_t touch = 0; touch < touches.size(); ++touch) on_gpu[touch] = !on_cpu(touch);
    for (std::size_t gap = 0; gap < resident.size(); ++gap) {
      const std::size_t next = (gap + 1) % touches.size();
      resident[gap] = first_.resident[i][gap] && second_.resident[i][gap] && may_be_there(gap) &&
                      may_be_there(next);
    }
    resident = without_idle_gaps(problem_.items[i], mixed_.device, std::move(resident));
    for (std::size_t gap = 0; gap < resident.size(); ++gap) {
      if (resident[gap]) on_gpu[gap] = on_gpu[(gap + 1) % touches.size()] = true;
    }
  }

  const ResidencyProblem& problem_;
  const Placement& first_;
  const Placement& second_;
  Placement mixed_;
  std::vector<Source> source_;  // by operation
};

}  // namespace

std::optional<Placement> mixed_placement(const ResidencyProblem& problem, const Placement& first,
                                         const Placement& second, const Mixture& mixture) {
  return PlacementMixer(problem, first, second).run(mixture);
}

}  // namespace stowage
