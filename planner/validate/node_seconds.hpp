// node_seconds: the seconds of a node on a processor, and copy_seconds: of a storage's copy,
// computed by the validator itself from the definitions in docs/plan-file.md ("Seconds"). It shares
// nothing with the planner's rates but the plan's figures and the step's description of the node
// (estimator/memory/kernel_work.hpp).
#pragma once

#include <cstddef>

#include "planner/plan/plan.hpp"

namespace stowage {

// The seconds that an amount takes. A rate of 0 is not known and limits nothing.
[[nodiscard]] constexpr double seconds_at(double amount, double rate) {
  return rate > 0 ? amount / rate : 0;
}

[[nodiscard]] double node_seconds(const Plan& plan, std::size_t node, const Processor& processor);
/// On the processor that the plan gives it.
[[nodiscard]] double node_seconds(const Plan& plan, std::size_t node);

[[nodiscard]] double copy_seconds(const Plan& plan, StorageId storage, const Link& link);

}  // namespace stowage
