#include "planner/pytorch/hooked_step.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>

namespace stowage {

namespace {

/// What happens before a node runs, those of one node in this order.
struct StepPoint {
  enum class Kind : std::uint8_t { copy_begins, let_go, fetched, needed };
  std::size_t before = 0;  ///< the node
  Kind kind = Kind::copy_begins;
  std::size_t decision = 0;

  [[nodiscard]] auto key() const { return std::tuple(before, kind, decision); }
};

std::vector<StepPoint> points_of(const std::vector<OffloadDecision>& decisions) {
  std::vector<StepPoint> points;
  points.reserve(4 * decisions.size());
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const SavedStay& stay = decisions[i].stay;
    points.push_back({stay.copied_after.index() + 1, StepPoint::Kind::copy_begins, i});
    points.push_back({stay.released_after.index() + 1, StepPoint::Kind::let_go, i});
    points.push_back({stay.fetched_before.index(), StepPoint::Kind::fetched, i});
    points.push_back({decisions[i].first_unpack.index(), StepPoint::Kind::needed, i});
  }
  std::ranges::sort(points, {}, &StepPoint::key);
  return points;
}

/// The host's memory: a tensor has it from its copy's begin to the step's end, where it is given
/// back to the pool.
Bytes pinned_bytes(const SizedStep& step, const std::vector<OffloadDecision>& decisions) {
  Bytes pinned;
  for (const OffloadDecision& decision : decisions) pinned += step.bytes(decision.stay.storage);
  return pinned;
}

}  // namespace

HookedStep hooked_step(const SizedStep& step, const Rates& rates,
                       const std::vector<OffloadDecision>& decisions, std::size_t calls) {
  const std::vector<StepPoint> points = points_of(decisions);
  std::vector<double> there(decisions.size()), back(decisions.size());  // when a copy is done
  double now = 0, downloads = 0, uploads = 0;
  HookedStep result{.pinned = pinned_bytes(step, decisions)};
  auto point = points.begin();
  for (std::size_t n = 0; n < step.graph->nodes.size(); ++n) {
    for (; point != points.end() && point->before == n; ++point) {
      const std::size_t i = point->decision;
      const Bytes bytes = step.bytes(decisions[i].stay.storage);
      switch (point->kind) {
        case StepPoint::Kind::copy_begins:
          downloads = there[i] = std::max(now, downloads) + d2h_seconds(rates, bytes);
          break;
        case StepPoint::Kind::let_go:
          now = std::max(now, there[i]);
          break;
        case StepPoint::Kind::fetched:
          uploads = back[i] = std::max(now, uploads) + h2d_seconds(rates, bytes);
          break;
        case StepPoint::Kind::needed:
          now = std::max(now, back[i]);
          break;
      }
    }
    const double seconds = gpu_seconds(rates, step, NodeId::of(n));
    now += seconds;
    result.busy_seconds += seconds;
  }
  result.seconds = std::max(now, hook_seconds * static_cast<double>(calls));
  return result;
}

}  // namespace stowage
