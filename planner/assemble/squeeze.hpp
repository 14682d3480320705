// A placement whose blocks reach beyond the budget, made to pack by giving up what is in their way.
//
// Its packing is kept as far as it goes. A block that reaches beyond the budget is put where what
// lies there costs least to give up: of the blocks that overlap a window of its size during its
// life some can move to where there is room, some can leave the GPU meanwhile, at the price of
// their copies. Or one of the block's own gaps is given up. So the price of what does not pack is
// paid where the packing shows it, one lump after another, not by limits on what is live at once.
// Large blocks come first; what is left then is packed anew, since small ones mostly find room.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "planner/assemble/packed_step.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

struct Squeezed {
  const SizedStep& step;
  const ResidencyProblem& problem;
  const Placement& placement;
  std::span<const Bytes> offsets;  ///< of a packing, one a request of its kept_claims
  GpuBudget budget;
  double dearest = 0;     ///< seconds: a placement that costs as much is not wanted
  std::int64_t work = 0;  ///< of about so many comparisons of blocks
};

/// None: nothing cheaper than `dearest` was found. Deterministic. Preconditions: `problem` is
/// make_problem's of `step`, possibly with other costs; evaluate() calls the placement consistent.
[[nodiscard]] std::optional<PackedStep> squeezed(const Squeezed& of);

}  // namespace stowage
