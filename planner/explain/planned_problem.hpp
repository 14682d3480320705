// PlannedProblem: the decisions of a plan, as a placement of the problem that it answers.
//
// Made from the plan alone: its step, its machine, its tables. Nothing is pinned in it, so that
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
  std::vector<std::vector<std::int32_t>> items_at;  ///< by operation: the items that it touches
};

/// Precondition: the plan passes check_structure. Errors: its tables are no placement, or move
/// other bytes than that placement does; the validator says what is wrong with such a plan.
[[nodiscard]] Result<PlannedProblem> planned_problem(const Plan& plan);

/// The place of a storage in one word.
enum class StorageState : std::uint8_t {
  unused,   ///< no kernel touches it
  on_cpu,   ///< no kernel on the GPU touches it
  on_gpu,   ///< it stays on the GPU while its value is needed there
  swapped,  ///< it leaves the GPU between two kernels there, or is uploaded for each
};
[[nodiscard]] std::string_view to_string(StorageState state);
[[nodiscard]] StorageState state_of(const PlannedProblem& planned, StorageId storage);

}  // namespace stowage
