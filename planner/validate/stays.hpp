// For checks of storages that have to stay on the GPU: the uses of a storage, and whether it stays
// there in between.
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

/// By storage: the nodes that read or write it, in order, one entry a node.
[[nodiscard]] std::vector<std::vector<Use>> uses_of(const Plan& plan);

/// The ranges of steps in which each storage is on the GPU.
class Stays {
 public:
  explicit Stays(const Plan& plan);

  /// Whether one range covers a node and a later one.
  [[nodiscard]] bool stays_between(StorageId storage, std::int32_t from, std::int32_t to) const {
    return any(storage,
               [&](StepRange range) { return range.contains(from) && range.contains(to); });
  }
  /// Whether the storage stays from a node over the step's end to a node of the next step.
  [[nodiscard]] bool stays_over_step_end(StorageId storage, std::int32_t from,
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

/// Whether the next step reads the value that this step leaves in the storage.
[[nodiscard]] bool goes_round(const Storage& storage, const std::vector<Use>& uses);

/// Calls visit(from, to, reads, stays) for each use and the next one, and where `round` is set also
/// for the last use and the first use of the next step.
template <typename Visit>
void visit_gaps(const Stays& stays, StorageId storage, const std::vector<Use>& uses, bool round,
                const Visit& visit) {
  for (std::size_t i = 1; i < uses.size(); ++i) {
    visit(uses[i - 1].step, uses[i].step, uses[i].reads,
          stays.stays_between(storage, uses[i - 1].step, uses[i].step));
  }
  if (!round || uses.empty()) return;
  const std::int32_t last = uses.back().step, first = uses.front().step;
  visit(last, first, true, stays.stays_over_step_end(storage, last, first));
}

}  // namespace stowage
