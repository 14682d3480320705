// PlanRequest: the input of a search for plans: one step, batch, card and budget.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/batch.hpp"
#include "estimator/card/card.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/model/model_options.hpp"
#include "estimator/serving/serving_settings.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/host.hpp"
#include "planner/problem/levers.hpp"
#include "planner/problem/measured_times.hpp"
#include "planner/problem/step_pins.hpp"
#include "planner/problem/work_budget.hpp"

namespace stowage {

struct PlanRequest {
  /// Its graph is the step to be planned, its runtime the one that the plan is for. Gradients do
  /// not accumulate beyond it. Costs of layers, an evaluation and warnings are not kept in plans.
  StepDocument document;
  SourceTextPtr description;   ///< the text that the step was lowered from; null: not known
  ModelOptions model_options;  ///< the options of that lowering
  WholeBatch batch;            ///< its micro-batches have equal parts of it
  std::optional<ServingSettings> serving = {};  ///< there: the step is a round of it
  Card card;
  Host host;
  std::shared_ptr<const MeasuredTimes> measured = {};  ///< for this card; null: none
  Bytes available;   ///< of the card, for the arena; 0: no card was given
  GpuBudget budget;  ///< for the arena; at most `available`, if a card was given
  PinRequest pins;
  /// `operators` counts only if the host's rate is known. If all levers are on, it also counts only
  /// where not everything fits on the GPU.
  Levers levers;
  std::string stowage_version;
};

/// What a search for plans did and left out.
struct SearchOutcome {
  Work limit;  ///< of all its passes
  Work spent;
  /// The proposals that were not searched for, since the work was spent or the search was stopped;
  /// sorted.
  std::vector<std::string> untried;
  /// The proposals whose search ended for that reason before it was done; sorted.
  std::vector<std::string> cut_short;
};

struct ProposalOptions {
  /// Of one pass. Where it is spent, running searches return their best result; the first plan is
  /// always searched for.
  Work work = usual_work;
  /// The search is made with `work`, then with twice as much, four times and so on up to `effort`
  /// times as much, and the best plans of all passes are taken: more effort never finds less.
  int effort = 1;
  /// Of two passes' plans the better one has fewer bytes over PCIe, and not the shorter step.
  bool least_pcie = false;
  double target_gap = 0.01;  ///< share of the overhead, as solve's
  /// Polled; once true, the search ends with the plans found so far.
  std::function<bool()> cancelled = {};
  /// Polled; once true, the search ends as if the work was spent.
  std::function<bool()> out_of_time = {};
  /// Called as soon as a cancelled search would end with a plan.
  std::function<void()> has_plan = {};
  /// Called where no plan for PyTorch fits that leaves the training as it is: what the best lacks.
  std::function<void(Bytes)> missing = {};
  /// Called when make_plans has ended.
  std::function<void(const SearchOutcome&)> ended = {};
};

}  // namespace stowage
