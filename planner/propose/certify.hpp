// What a plan's certificate is made of: the scope of its bounds, and what the solvers proved.
#pragma once

#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "planner/certificate/certificate.hpp"
#include "planner/problem/residency_problem.hpp"
#include "planner/solve/lane_balance.hpp"
#include "planner/solve/split_bound.hpp"

namespace stowage {

/// What make_problem pins to the GPU with these options, beside the user's pins.
[[nodiscard]] BoundScope scope_of(const ProblemOptions& options);

/// Whether plans of this scope keep all that plans with every node pinned to the GPU keep. Others
/// may let go what lies between nodes that only happen to run there, so that a bound of the pinned
/// ones is none of theirs.
[[nodiscard]] bool keeps_as_if_pinned(const BoundScope& scope);

/// Of every node with a choice of engines whose least workspace is not 0.
[[nodiscard]] std::vector<NodeWorkspace> least_workspaces(const SizedStep& step);

/// The larger of two bounds on the step, and its proof.
struct StepBound {
  double seconds = 0;
  std::variant<std::monostate, LaneProof, SplitProof> proof;
};
[[nodiscard]] StepBound larger_bound(const BoundScope& scope, const LaneBalance& lanes,
                                     const SplitBound& split);

}  // namespace stowage
