// pack_by_eviction: packs a placement whose blocks reach beyond the budget, by evicting what is in
// their way.
//
// Its packing is kept as far as possible. A block that reaches beyond the budget goes to the place
// that costs least to free: of the blocks that overlap its range of addresses during its life, some
// can move to free places, and some can leave the GPU meanwhile, at the cost of their copies. Or
// one of the block's own gaps is dropped. So the cost of what does not pack is paid where the
// packing shows it, one block after another, not by limits on what is live at once. Large blocks
// come first. What is left then is packed anew, since small blocks mostly find a place.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "planner/assemble/packed_step.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"
#include "planner/problem/work_budget.hpp"

namespace stowage {

struct EvictionRequest {
  const SizedStep& step;
  const ResidencyProblem& problem;
  const Placement& placement;
  std::span<const Bytes> offsets;  ///< of a packing: one for each request of its kept_claims
  GpuBudget budget;
  double cost_limit = 0;          ///< seconds: a placement that costs as much is of no use
  std::int64_t work = 0;          ///< about so many comparisons of blocks
  WorkBudget* charged = nullptr;  ///< for the comparisons that were made
};

/// None: nothing cheaper than `cost_limit` was found. Deterministic. Preconditions: `problem` is
/// make_problem's of `step`, possibly with other costs; evaluate() calls the placement consistent.
[[nodiscard]] std::optional<PackedStep> pack_by_eviction(const EvictionRequest& of);

}  // namespace stowage
