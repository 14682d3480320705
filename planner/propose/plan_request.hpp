// PlanRequest: what plans are made of, for one step, batch, card and budget.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "estimator/base/batch.hpp"
#include "estimator/card/card.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/model/model_options.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/host.hpp"
#include "planner/problem/levers.hpp"
#include "planner/problem/measured_times.hpp"
#include "planner/problem/step_pins.hpp"

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
  std::shared_ptr<const MeasuredTimes> measured = {};  ///< for this card; null: nothing was
  Bytes available;   ///< of the card, for the arena; 0: no card was given
  GpuBudget budget;  ///< for the arena
  PinRequest pins;
  Levers levers;  ///< operators only where the host's rate is known and, unless fewer levers than
                  ///< all are asked for, where not everything fits on the GPU
  std::string stowage_version;
};

struct ProposalOptions {
  /// For all of the search. Past it what has begun is ended with what there is, and a first plan
  /// is still looked for.
  double time_limit_seconds = 10;
  double target_gap = 0.01;  ///< of the overhead, as solve's
  /// Polled; once true, the search ends with the plans that there are.
  std::function<bool()> cancelled = {};
  /// Called as soon as there is a plan to end with.
  std::function<void()> has_plan = {};
};

}  // namespace stowage
