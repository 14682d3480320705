// Versions of an item: the value that one writing touch makes and later touches read.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/base/step_range.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// Touches and gaps by their index in the item. A touch that reads and writes is the last reader of
/// one version and the producer of the next.
struct Version {
  std::int32_t producer = -1;         ///< -1: it was made before the step and is valid on the host
  std::vector<std::int32_t> readers;  ///< in the order in which they read
};

/// Every version that a touch of this step reads or makes, ordered by producer. The last version of
/// an item that wraps is also read by the first touches of the next step. O(touches).
[[nodiscard]] std::vector<Version> versions_of(const Item& item);

/// The gap that ends at a touch; -1: none (the first touch of an item that does not wrap).
[[nodiscard]] std::int32_t gap_before(const Item& item, std::int32_t touch);
[[nodiscard]] std::int32_t gap_count(const Item& item);

/// The steps strictly inside a gap. Of a gap that goes round the step's end, `within` holds the
/// steps after the last touch and `wrapped` those before the first.
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
