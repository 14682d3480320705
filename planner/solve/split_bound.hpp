// A bound on the overlapped step by what happens before and after one of its nodes.
//
// What is not on the GPU during node b was downloaded before b starts, if it was made there, and is
// uploaded after b ends, if it is read there again. The lanes work side by side, but these
// downloads and uploads do not: so
//
//   step >= max(GPU's nodes before b, downloads) + seconds of b + max(GPU's nodes after b, uploads)
//
// for whichever items are away during b, and enough of them have to be for the rest to fit. Which
// are away is a knapsack with two costs; its relaxation, with weights between the two lanes of each
// side, is solved by ratio, and any weights give a bound. It holds for copies that are under way
// during b, too: they take memory then, and count as not away.
//
// The CPU's nodes run beside the GPU's, from before b until after it if they like: only those of
// the GPU are serial with b. But all of the CPU's nodes are serial among themselves, so that for a
// weight c between 0 and 1
//
//   step >= (1 - c) * (the right side above) + c * seconds of all of the CPU's nodes
//
// With weights d and u for the copies of the two sides, a node before b that may run on either
// costs at least min((1 - c) (1 - d) * seconds on the GPU, c * seconds on the CPU), one after b the
// same with u. Each node is counted by itself, whichever items are away, so the sum is a bound.
//
// The busiest lane's bound (lane_balance.hpp) lets all downloads and uploads overlap; this one does
// not, and is up to twice as high where the link is what a step waits for.
#pragma once

#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

struct SplitBound {
  double seconds = 0;  ///< no plan within the budget has a shorter step
  std::int32_t node =
      -1;                ///< the node that gives it; -1: all that has to be computed takes so long
  double downloads = 0;  ///< the weights of copies before and after the node, 0 to 1
  double uploads = 0;
  double cpu = 0;  ///< the weight of the CPU's lane, 0 to 1
};

/// Items of which an operation beside the gap may run on the CPU count as away for nothing. Looks
/// at a few dozen nodes, those with the most to keep among them; O(touches + nodes looked at *
/// items * log(items)).
[[nodiscard]] SplitBound split_bound(const ResidencyProblem& problem, GpuBudget budget);

}  // namespace stowage
