// Trials: rewritings of a step, each with a forecast of its shortest step. The trial with the best
// forecast is searched first, and the others only as long as their forecast is better than what was
// found.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/propose/fit_host.hpp"
#include "planner/propose/step_plans.hpp"

namespace stowage {

/// The case of a rewritten step. Errors: as make_case's.
[[nodiscard]] Result<StepCase> case_of(const Planning& planning, StepGraph graph);

/// A complete plan of the step; none: it has no plan. `name` is that of the proposal.
[[nodiscard]] std::optional<Plan> plan_of(const Planning& planning, const StepCase& of,
                                          const std::string& name, const PlanSearch& search);

/// A forecast of the shortest step, from one solve without branching. Its limits are a little below
/// the budget, since plans have to pack, and its copies are simulated as if they need not pack.
/// Neither a bound nor a plan.
struct StepForecast {
  HostRank rank;        ///< of that step
  Placement placement;  ///< with which it was simulated
};
/// None: nothing fits.
[[nodiscard]] std::optional<StepForecast> forecast_step(const Planning& planning,
                                                        const StepCase& of);

/// A rewriting with its forecast.
struct Trial {
  StepCase of;
  HostRank forecast;
  Placement placement;               ///< of the forecast
  std::string name;                  ///< of its plan
  std::vector<std::string> remarks;  ///< on it
  /// The result of a search that has been made already.
  struct Search {
    std::optional<Plan> plan;
  };
  std::optional<Search> search = {};
};
using Trials = std::vector<Trial>;
/// Whether the trial is worth a search where there is already a plan that the host holds.
[[nodiscard]] bool may_beat(const Trial& trial, const Plan& plan);

/// None: nothing fits.
[[nodiscard]] std::optional<Trial> trial_of(const Planning& planning, StepCase of, std::string name,
                                            std::vector<std::string> remarks);
/// The trials that `made` gives for 0 to count - 1, made in parallel, with an equal part of the
/// work each, in their order.
using MakeTrial = std::function<std::optional<Trial>(const Planning& part, std::size_t index)>;
[[nodiscard]] Trials make_trials(const Planning& planning, std::size_t count,
                                 const MakeTrial& made);

/// Plans of the trials, each better than `known`, if given, and than those before it; of several
/// with one name, the best.
[[nodiscard]] std::vector<Plan> better_plans(const Planning& planning, Trials trials, Effort effort,
                                             const Plan* known = nullptr);

/// The best of `known`, if given, and of the plans of a few trials; none: there is no plan.
[[nodiscard]] std::optional<Plan> best_of(const Planning& planning, Trials trials, Effort effort,
                                          std::optional<Plan> known = std::nullopt);

}  // namespace stowage
