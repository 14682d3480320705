// make_plans: the plans (proposals) that a user is shown for one step, batch, card and budget.
//
//   all-gpu         everything stays on the GPU; only if it fits
//   cheapest        the fastest simulated step of those that run the whole batch at once, in this
//                   order, with the means that the levers allow
//   min-pcie        everything computed on the GPU; fewest bytes over PCIe
// If all-gpu does not fit, each of these is shown if its step is shorter than those so far (or if
// the host holds it and none of those):
//   early-updates   each parameter updated right after its gradient
//   order           the nodes in another order, whose peak is lower
//   recompute       values of the forward pass made again in backward, the rest swapped
// and, for a step that has one micro-batch and was not recorded at one batch only:
//   micro-batch-K   the batch in K parts with gradients added up
//   chunk-K         the same for an inference
//   segments-S-chunk-K  all chunks through one segment of the network before the next, where that
//                   is shorter still
#pragma once

#include <string_view>
#include <vector>

#include "estimator/workspace/workspace_source.hpp"
#include "planner/plan/plan.hpp"
#include "planner/propose/plan_request.hpp"

namespace stowage {

/// The name of the plan with everything on the GPU.
inline constexpr std::string_view all_gpu_name = "all-gpu";

/// The peak of the live sum where everything stays on the GPU. A budget in percent is a share of
/// it. Errors: the step cannot be sized.
[[nodiscard]] Result<Bytes> least_whole_arena(const PlanRequest& request,
                                              WorkspaceSource& workspaces);

/// The plans in the order above; at least one. The same request gives the same plans on any
/// machine, unless it is cancelled or out of time. Every plan's arena is within the budget, and its
/// bounds are those of the budget, even if the plan was solved within lower limits. Errors: the
/// micro-batches cannot share the batch; the step cannot be sized; no proposal fits: then the
/// message names the operation that alone exceeds the budget.
[[nodiscard]] Result<std::vector<Plan>> make_plans(const PlanRequest& request,
                                                   WorkspaceSource& workspaces,
                                                   const ProposalOptions& options = {});

}  // namespace stowage
