// split_bound: a bound on the overlapped step by what happens before and after one of its nodes.
//
// Whatever is away from the GPU during node b was downloaded before b starts, if it was made there,
// and is uploaded after b ends, if it is read there again. The lanes work side by side, but these
// downloads and uploads do not. So
//
//   step >= max(GPU's nodes before b, downloads) + seconds of b + max(GPU's nodes after b, uploads)
//
// for whichever items are away during b, and enough of them have to be away for the rest to fit.
// Choosing them is a knapsack with two costs. Its relaxation, with weights between the two lanes of
// each side, is solved by ratio, and any weights give a bound. The bound also holds for copies that
// are under way during b: they take memory then, and count as not away.
//
// The CPU's nodes may run beside the GPU's, from before b until after it: only the GPU's nodes are
// serial with b. But all of the CPU's nodes are serial among themselves. So for a weight c between
// 0 and 1
//
//   step >= (1 - c) * (the right side above) + c * seconds of all of the CPU's nodes
//
// With weights d and u for the copies of the two sides, a node before b that may run on either side
// costs at least min((1 - c) (1 - d) * seconds on the GPU, c * seconds on the CPU), a node after b
// the same with u. Each node is counted by itself, whichever items are away, so the sum is a bound.
//
// The busiest lane's bound (lane_balance.hpp) lets all downloads and uploads overlap. This bound
// does not, and is up to twice as high where the step waits for the link.
#pragma once

#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

struct SplitBound {
  double seconds = 0;      ///< no plan within the budget has a shorter step
  std::int32_t node = -1;  ///< the node of the bound; -1: the sum of all computation
  double downloads = 0;    ///< the weights of copies before and after the node, 0 to 1
  double uploads = 0;
  double cpu = 0;  ///< the weight of the CPU's lane, 0 to 1
};

/// Items with an operation beside the gap that may run on the CPU count as away at no cost. Looks
/// at a few dozen nodes, among them those with the most to keep. O(touches + nodes looked at *
/// items * log(items)).
[[nodiscard]] SplitBound split_bound(const ResidencyProblem& problem, GpuBudget budget);

}  // namespace stowage
