// From a plan that swaps saved tensors to decisions that hooks of PyTorch's can carry out: copies
// begin and memory is let go and taken again at calls of the hooks alone.
#pragma once

#include <cstddef>
#include <vector>

#include "estimator/rewrite/saved_on_host.hpp"
#include "planner/plan/plan.hpp"
#include "planner/pytorch/pytorch_plan.hpp"
#include "planner/pytorch/saved_moments.hpp"

namespace stowage {

struct OffloadDecision {
  SavedStay stay;            ///< the same as nodes of the plan's step
  OffloadedStorage storage;  ///< by the names of the script
  NodeId first_unpack;       ///< backward needs it from this node on
};

/// One for each saved storage that the plan brings back in backward, in the order in which their
/// copies begin. Each moves to the next call of a hook: it is let go no earlier than in the plan,
/// and fetched no later. Storages that no call names stay. O(transfers * log moments).
[[nodiscard]] std::vector<OffloadDecision> offload_decisions(
    const Plan& plan, const std::vector<SavedMoment>& moments);

/// Their stays, in that order.
[[nodiscard]] std::vector<SavedStay> stays_of(const std::vector<OffloadDecision>& decisions);

}  // namespace stowage
