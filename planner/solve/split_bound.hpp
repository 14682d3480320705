// A bound on the overlapped step by what happens before and after one of its nodes.
//
// What is not on the GPU during node b was downloaded before b starts, if it was made there, and is
// uploaded after b ends, if it is read there again. The lanes work side by side, but these
// downloads and uploads do not: so
//
//   step >= max(compute before b, downloads) + seconds of b + max(compute after b, uploads)
//
// for whichever items are away during b, and enough of them have to be for the rest to fit. Which
// are away is a knapsack with two costs; its relaxation, with weights between the two lanes of each
// side, is solved by ratio, and any weights give a bound. It holds for copies that are under way
// during b, too: they take memory then, and count as not away.
//
// The busiest lane's bound (lane_balance.hpp) lets all downloads and uploads overlap; this one does
// not, and is up to twice as high where the link is what a step waits for.
#pragma once

#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// Seconds: no plan within the budget has a shorter step. Items of which an operation beside the
/// gap may run on the CPU count as away for nothing. Looks at a few dozen nodes, those with the
/// most to keep among them; O(touches + nodes looked at * items * log(items)).
[[nodiscard]] double split_bound(const ResidencyProblem& problem, Bytes budget);

}  // namespace stowage
