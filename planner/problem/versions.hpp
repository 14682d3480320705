// Versions of an item: what one writing touch makes and the touches after it read.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/base/step_range.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// Touches and gaps by their index in the item. A touch that reads and writes is the last reader of
/// one version and the producer of the next.
struct Version {
  std::int32_t producer = -1;         ///< -1: made before the step and valid on the host
  std::vector<std::int32_t> readers;  ///< in the order in which they read
};

/// Every version that a touch of this step reads or makes, in order of its producer. Of an item
/// that wraps, the last version's readers go on with the next step's first. O(touches).
[[nodiscard]] std::vector<Version> versions_of(const Item& item);

/// The gap that leads to a touch; -1: none does (the first touch of an item that does not wrap).
[[nodiscard]] std::int32_t gap_before(const Item& item, std::int32_t touch);
[[nodiscard]] std::int32_t gap_count(const Item& item);

/// The steps strictly inside a gap. Where the gap goes round the step's end, some of them come
/// after the last touch and the others, `wrapped`, before the first.
struct GapSteps {
  StepRange within;
  StepRange wrapped;

  [[nodiscard]] bool contains(std::int32_t step) const {
    return within.contains(step) || wrapped.contains(step);
  }
};
/// `steps`: how many operations the problem has. Precondition: 0 <= gap < gap_count(item).
[[nodiscard]] GapSteps steps_inside(const Item& item, std::int32_t gap, std::int32_t steps);

}  // namespace stowage
