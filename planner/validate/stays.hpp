// For the checks of what has to stay on the GPU: who uses a storage, and whether it is there in
// between.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/plan/two_sides.hpp"

namespace stowage {

struct Use {
  std::int32_t step = 0;
  bool reads = false;
};

/// Nodes that read or write each storage, in order, one entry a node.
[[nodiscard]] std::vector<std::vector<Use>> uses_of(const Plan& plan);

/// Where on the GPU each storage lies, stretch by stretch.
class Stays {
 public:
  explicit Stays(const Plan& plan);

  /// One stretch from one node to a later one.
  [[nodiscard]] bool joins(StorageId storage, std::int32_t from, std::int32_t to) const {
    return any(storage,
               [&](StepRange range) { return range.contains(from) && range.contains(to); });
  }
  /// One stretch from a node over the step's end to a node of the next step.
  [[nodiscard]] bool joins_over_the_end(StorageId storage, std::int32_t from,
                                        std::int32_t to) const {
    return !arrives_at_start_[storage.index()] && any(storage, [&](StepRange range) {
      return range.contains(from) && range.end == steps_;
    }) && any(storage, [&](StepRange range) { return range.contains(to) && range.begin == 0; });
  }

 private:
  template <typename Condition>
  [[nodiscard]] bool any(StorageId storage, const Condition& condition) const {
    return std::ranges::any_of(ranges_[storage.index()], condition);
  }

  std::int32_t steps_;
  std::vector<std::vector<StepRange>> ranges_;  // by storage
  std::vector<bool> arrives_at_start_;
};

/// Whether what one step leaves in the storage is read by the next.
[[nodiscard]] bool goes_round(const Storage& storage, const std::vector<Use>& uses);

/// From each of these uses to the next, round the step's end too where the value goes round.
template <typename Visit>
void visit_gaps(const Stays& stays, StorageId storage, const std::vector<Use>& uses, bool round,
                const Visit& visit) {
  for (std::size_t i = 1; i < uses.size(); ++i) {
    visit(uses[i - 1].step, uses[i].step, uses[i].reads,
          stays.joins(storage, uses[i - 1].step, uses[i].step));
  }
  if (!round || uses.empty()) return;
  const std::int32_t last = uses.back().step, first = uses.front().step;
  visit(last, first, true, stays.joins_over_the_end(storage, last, first));
}

}  // namespace stowage
