// A proposal of a changed step: its plan, with bytes, seconds and bounds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "estimator/rewrite/parameter_updates.hpp"
#include "planner/plan/plan.hpp"
#include "planner/problem/rates.hpp"
#include "planner/pytorch/hooked_run.hpp"
#include "planner/pytorch/offload_decisions.hpp"
#include "planner/pytorch/pytorch_plans.hpp"

namespace stowage {

/// The step as it is asked for, before anything is changed.
struct WholeStep {
  SizedStep step;
  Bytes available;                          ///< of the card
  std::optional<ParameterUpdates> updates;  ///< of a step that trains; none: they stay as they are
};

/// A changed step that fits.
struct FittingCase {
  const HookedCase& of;
  std::vector<OffloadDecision> decisions = {};  ///< saved tensors on the host
  std::optional<PlanTotals> bounds = {};        ///< of those decisions
  /// With streamed parameters, excess_bytes of the step without; with some updates on the CPU,
  /// host_updates_bound.
  Bytes excess = {};
};

[[nodiscard]] PytorchProposal described_proposal(const PytorchRequest& request, const Rates& rates,
                                                 const WholeStep& whole, const FittingCase& fitting,
                                                 std::string name, CheckReport report);

/// Whether the training is another one than without the plan: micro-batches, of a step that takes
/// statistics over its batch.
[[nodiscard]] bool changes_training(const HookedCase& of);

}  // namespace stowage
