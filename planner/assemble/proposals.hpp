// Proposals: the plans that a user is shown for one step, batch, card and budget.
//
//   all-gpu         everything stays on the GPU; only if it fits
//   cheapest        forward and backward on the GPU, updates where they cost least; the fastest
//                   simulated step of those that run the whole batch at once
//   min-pcie        everything computed on the GPU; fewest bytes over PCIe
//   micro-batch-K   the batch in K parts with gradients added up, if all-gpu does not fit: the
//                   fastest simulated step among the fewest parts that need no swapping and a few
//                   that swap. Of a step that trains, has one micro-batch and was not recorded at
//                   one batch only
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "estimator/base/batch.hpp"
#include "estimator/card/card.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/model/model_options.hpp"
#include "estimator/workspace/workspace_source.hpp"
#include "planner/plan/plan.hpp"
#include "planner/problem/host.hpp"

namespace stowage {

struct PlanRequest {
  /// Its graph is the step that is planned, its runtime what the plan is for,
  /// and nothing accumulates beyond it. Costs of layers, an
  /// evaluation and warnings are not kept in plans.
  StepDocument document;
  SourceTextPtr description;   ///< what the step was lowered from; null: nobody knows
  ModelOptions model_options;  ///< with which it was
  WholeBatch batch;            ///< its micro-batches share it equally
  Card card;
  Host host;
  Bytes available;  ///< of the card, for the arena; 0: no card was given
  Bytes budget;     ///< for the arena
  std::string stowage_version;
};

struct ProposalOptions {
  double time_limit_seconds = 10;  ///< for each proposal
  double target_gap = 0.01;        ///< of the overhead, as solve's
  /// Polled; once true, the search ends with the plans that there are.
  std::function<bool()> cancelled = {};
  /// Called as soon as there is a plan to end with.
  std::function<void()> has_plan = {};
};

/// The live sum that the arena has at its peak where everything stays on the GPU: what a budget in
/// percent is a share of. Errors: the step cannot be sized.
[[nodiscard]] Result<Bytes> least_whole_arena(const PlanRequest& request,
                                              WorkspaceSource& workspaces);

/// In the order above; at least one. Every plan's arena is within the budget, and its bounds are
/// those of the budget, whatever live sum the plan was solved for.
/// Errors: the micro-batches cannot share the batch; the step cannot be sized; no proposal fits:
/// the operation that alone breaks the budget is named.
[[nodiscard]] Result<std::vector<Plan>> make_plans(const PlanRequest& request,
                                                   WorkspaceSource& workspaces,
                                                   const ProposalOptions& options = {});

}  // namespace stowage
