// PlannedProblem: what a plan decided, as a placement of the problem that it answers.
//
// Made of the plan alone: its step, its machine, its tables. Nothing is pinned in it, so that
// evaluate() can be asked about any other placement, whatever the plan's pins say.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "planner/plan/plan.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

struct PlannedProblem {
  ResidencyProblem problem;
  Placement placement;
  Evaluation evaluation;                            ///< of the placement
  std::vector<std::int32_t> item_of;                ///< by StorageId; -1: not placed
  std::vector<std::vector<std::int32_t>> items_at;  ///< by operation: the items it touches
};

/// Precondition: the plan passes check_structure. Errors: its tables are no placement, or move
/// other bytes than that placement does; the validator says what is wrong with such a plan.
[[nodiscard]] Result<PlannedProblem> planned_problem(const Plan& plan);

/// Where a storage is, in one word.
enum class StorageState : std::uint8_t {
  unused,   ///< no kernel touches it
  on_cpu,   ///< no kernel on the GPU touches it
  on_gpu,   ///< it stays there while its value is wanted there
  swapped,  ///< it leaves the GPU between two kernels there, or is brought for each
};
[[nodiscard]] std::string_view to_string(StorageState state);
[[nodiscard]] StorageState state_of(const PlannedProblem& planned, StorageId storage);

}  // namespace stowage
