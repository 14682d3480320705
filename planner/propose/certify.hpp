// The parts of a plan's certificate: the scope of its bounds, and the proofs of the solvers.
#pragma once

#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "planner/certificate/certificate.hpp"
#include "planner/problem/residency_problem.hpp"
#include "planner/solve/lane_balance.hpp"
#include "planner/solve/split_bound.hpp"

namespace stowage {

/// The scope of make_problem with these options: what it pins to the GPU beside the user's pins.
[[nodiscard]] BoundScope scope_of(const ProblemOptions& options);

/// Whether plans of this scope keep everything that plans with every node pinned to the GPU keep.
/// Plans of other scopes may drop what lies between nodes that only happen to run there, so that a
/// bound of the pinned plans does not hold for them.
[[nodiscard]] bool keeps_as_if_pinned(const BoundScope& scope);

/// The least workspace of every node with a choice of engines, where it is not 0.
[[nodiscard]] std::vector<NodeWorkspace> least_workspaces(const SizedStep& step);

/// The larger of two bounds on the step, and its proof.
struct StepBound {
  double seconds = 0;
  std::variant<std::monostate, LaneProof, SplitProof> proof;
};
[[nodiscard]] StepBound larger_bound(const BoundScope& scope, const LaneBalance& lanes,
                                     const SplitBound& split);

}  // namespace stowage
