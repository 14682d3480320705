#include "planner/solve/split_bound.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "estimator/base/live_sum.hpp"
#include "planner/problem/versions.hpp"

namespace stowage {
namespace {

constexpr std::size_t most_splits = 48;
constexpr double split_rounding = 1e-9;  // of sums of seconds
constexpr std::array<double, 5> side_weights{0, 0.25, 0.5, 0.75, 1};
// The weights of the CPU's lane against the rest. The CPU is slow, so small weights matter most.
constexpr std::array<double, 7> cpu_weights{0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5};

/// The cost on each lane of an item that is away during the node.
struct Absence {
  double bytes = 0, download = 0, upload = 0;
  double rate = 0;  // seconds a byte, by the weights at hand
};

class SplitSearch {
 public:
  SplitSearch(const ResidencyProblem& problem, GpuBudget budget)
      : problem_(problem),
        steps_(static_cast<std::int32_t>(problem.operations.size())),
        budget_(static_cast<double>(budget.bytes.count())) {
    cpu_choices_ = std::ranges::any_of(problem.operations,
                                       [](const Operation& o) { return o.pin != Pin::gpu; })
                       ? cpu_weights.size()
                       : 1;
    for (std::size_t c = 0; c < cpu_choices_; ++c) {
      for (std::size_t s = 0; s < side_weights.size(); ++s) {
        before_[c][s] = sums((1 - cpu_weights[c]) * (1 - side_weights[s]), cpu_weights[c]);
      }
    }
  }

  SplitBound best() {
    for (std::size_t c = 0; c < cpu_choices_; ++c) {
      take({.seconds = before_[c][0].back(), .cpu = cpu_weights[c]});
    }
    for (const std::int32_t node : splits()) look_beside(node);
    best_.seconds *= 1 - split_rounding;
    return best_;
  }

 private:
  void take(const SplitBound& bound) {
    if (bound.seconds > best_.seconds) best_ = bound;
  }

  static double gpu_seconds(const Operation& operation) {
    double seconds = operation.engines.front().seconds;
    for (const EngineCost& engine : operation.engines) seconds = std::min(seconds, engine.seconds);
    return seconds;
  }

  /// By boundary: the least seconds of the operations before it, weighted by side.
  [[nodiscard]] std::vector<double> sums(double gpu, double cpu) const {
    std::vector<double> sums{0};
    for (const Operation& operation : problem_.operations) {
      const double there = gpu * gpu_seconds(operation), here = cpu * operation.cpu_seconds;
      sums.push_back(sums.back() + (operation.pin == Pin::gpu   ? there
                                    : operation.pin == Pin::cpu ? here
                                                                : std::min(there, here)));
    }
    return sums;
  }

  [[nodiscard]] bool on_gpu(const Touch& touch) const {
    return problem_.operations[static_cast<std::size_t>(touch.step)].pin == Pin::gpu;
  }

  /// The nodes to look at, all pinned to the GPU: half of them those with the most to keep, half of
  /// them evenly spaced.
  [[nodiscard]] std::vector<std::int32_t> splits() const {
    LiveSum sum(steps_);
    for (const Item& item : problem_.items) {
      for (std::int32_t gap = 0; gap < gap_count(item); ++gap) {
        const GapSteps inside = steps_inside(item, gap, steps_);
        sum.add(inside.within, item.bytes);
        sum.add(inside.wrapped, item.bytes);
      }
    }
    const std::vector<Bytes> live = std::move(sum).by_step();
    std::vector<std::int32_t> nodes;
    for (std::int32_t t = 0; t < steps_; ++t) {
      if (problem_.operations[static_cast<std::size_t>(t)].pin == Pin::gpu) nodes.push_back(t);
    }
    std::vector<std::int32_t> chosen;
    const std::size_t stride = std::max<std::size_t>(1, nodes.size() / (most_splits / 2));
    for (std::size_t i = stride / 2; i < nodes.size(); i += stride) chosen.push_back(nodes[i]);
    std::ranges::stable_sort(nodes, std::greater<>(), [&](std::int32_t node) {
      return live[static_cast<std::size_t>(node)];
    });
    nodes.resize(std::min(nodes.size(), most_splits / 2));
    chosen.insert(chosen.end(), nodes.begin(), nodes.end());
    return chosen;
  }

  /// Takes the bound of a node that is pinned to the GPU.
  void look_beside(std::int32_t node) {
    away_.clear();
    double kept = 0;  // bytes that are there whatever is chosen
    for (const Item& item : problem_.items) kept += look_at(item, node);
    const Operation& operation = problem_.operations[static_cast<std::size_t>(node)];
    Bytes workspace = operation.engines.front().workspace;
    for (const EngineCost& engine : operation.engines) {
      workspace = std::min(workspace, engine.workspace);
    }
    kept += static_cast<double>((workspace + operation.temporaries).count());
    double excess = kept - budget_;
    for (const Absence& absence : away_) excess += absence.bytes;
    const auto t = static_cast<std::size_t>(node);
    if (excess <= 0) return;
    const double own = gpu_seconds(operation);
    for (std::size_t down = 0; down < side_weights.size(); ++down) {
      for (std::size_t up = 0; up < side_weights.size(); ++up) {
        if (down + up == 0) continue;
        const double beside = own + least_copies(excess, side_weights[down], side_weights[up]);
        for (std::size_t c = 0; c < cpu_choices_; ++c) {
          const std::vector<double>& later = before_[c][up];
          take({.seconds = before_[c][down][t] + (later.back() - later[t + 1]) +
                           (1 - cpu_weights[c]) * beside,
                .node = node,
                .downloads = side_weights[down],
                .uploads = side_weights[up],
                .cpu = cpu_weights[c]});
        }
      }
    }
  }

  /// The bytes of an item that have to be on the GPU; an item that may be away is added to away_.
  double look_at(const Item& item, std::int32_t node) {
    const auto bytes = static_cast<double>(item.bytes.count());
    const auto next = std::ranges::lower_bound(item.touches, node, {}, &Touch::step);
    if (next != item.touches.end() && next->step == node) return bytes;
    const auto after = static_cast<std::size_t>(next - item.touches.begin());
    const bool wraps_round = after == 0 || after == item.touches.size();
    if (wraps_round && !item.wraps) return 0;
    const std::size_t gap = after == 0 ? item.touches.size() - 1 : after - 1;
    const GapPin pin = gap_pin(item, static_cast<std::int32_t>(gap));
    if (pin == GapPin::resident) return bytes;
    const Touch& from = item.touches[gap];
    const Touch& to = item.touches[(gap + 1) % item.touches.size()];
    if (pin == GapPin::dropped || !to.reads || !on_gpu(from) || !on_gpu(to)) return 0;
    Absence absence{.bytes = bytes};
    if (made_before(item, after)) absence.download = item.d2h_seconds;
    if (after < item.touches.size()) absence.upload = item.h2d_seconds;
    away_.push_back(absence);
    return 0;
  }

  /// Whether the version that is there before a touch was made in this step, on the GPU.
  [[nodiscard]] bool made_before(const Item& item, std::size_t touch) const {
    for (std::size_t i = touch; i-- > 0;) {
      if (item.touches[i].writes) return on_gpu(item.touches[i]);
    }
    return false;
  }

  /// The least weighted copies that keep so many bytes away: the relaxed knapsack.
  double least_copies(double excess, double down, double up) {
    const auto cost = [&](const Absence& absence) {
      return down * absence.download + up * absence.upload;
    };
    // Stable, by one key each: where keys are equal, the order, and so the sum, is the items'.
    std::vector<Absence> away = away_;
    for (Absence& absence : away) {
      absence.rate = cost(absence) / std::max(absence.bytes, 1.0);
    }
    std::ranges::stable_sort(away, {}, &Absence::rate);
    double seconds = 0;
    for (const Absence& absence : away) {
      if (excess <= 0) break;
      const double part = absence.bytes > 0 ? std::min(1.0, excess / absence.bytes) : 0;
      seconds += part * cost(absence);
      excess -= absence.bytes;
    }
    return seconds;
  }

  const ResidencyProblem& problem_;
  std::int32_t steps_;
  double budget_;
  std::size_t cpu_choices_ = 1;  // so many of cpu_weights
  // sums() by weights of the CPU's lane and of a side's copies.
  std::array<std::array<std::vector<double>, side_weights.size()>, cpu_weights.size()> before_;
  std::vector<Absence> away_;  // of the node at hand
  SplitBound best_;
};

}  // namespace

SplitBound split_bound(const ResidencyProblem& problem, GpuBudget budget) {
  return SplitSearch(problem, budget).best();
}

}  // namespace stowage
