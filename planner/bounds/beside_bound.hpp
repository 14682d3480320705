// beside_bound: a bound on the overlapped step by what is away from the GPU during one node.
//
// Whatever is away during node b was downloaded before b, if this step made it on the GPU, and is
// uploaded after b, if this step reads it there again. The CPU's nodes run beside the GPU's, one
// after the other. So with weights d, u and c from 0 to 1
//
//   step >= (1 - c) * [ (1 - d) * GPU's nodes before b + d * downloads + seconds of b
//                       + (1 - u) * GPU's nodes after b + u * uploads ]  +  c * CPU's nodes
//
// for whatever is away, and enough has to be for the rest to fit. That is a knapsack; its
// relaxation takes items, the last one in part, by their cost for a byte. Items whose neighbours
// may run on the CPU count as away at no cost.
#pragma once

#include <cstdint>

#include "planner/bounds/bound_problem.hpp"

namespace stowage {

/// Preconditions: the node is one of the problem's and has to run on the GPU; weights from 0 to 1;
/// overflow_reason() is "". O(touches + items * log items).
[[nodiscard]] double beside_bound(const BoundProblem& problem, std::int32_t node, double downloads,
                                  double uploads, double cpu);

}  // namespace stowage
