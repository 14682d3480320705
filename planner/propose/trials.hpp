// Trials: rewritings of a step, each with the step that it promises; the most promising is searched
// first, and the others only as long as they promise more than what was found.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/propose/fit_host.hpp"
#include "planner/propose/step_plans.hpp"

namespace stowage {

/// The case of a rewritten step. Errors: make_case's.
[[nodiscard]] Result<StepCase> case_of(const Planning& planning, StepGraph graph);

/// Complete; none: the step has no plan.
[[nodiscard]] std::optional<Plan> plan_of(const Planning& planning, const StepCase& of,
                                          const PlanSearch& search);

/// What a step promises, and the placement that does: solved once without branching, a little below
/// the budget since plans have to pack, with copies that need not. Neither a bound nor a plan.
struct Promising {
  HostRank promise;
  Placement placement;
};
/// None: nothing fits.
[[nodiscard]] std::optional<Promising> promise_of(const Planning& planning, const StepCase& of);

struct Trial {
  StepCase of;
  HostRank promise;
  Placement placement;               ///< that promises it
  std::string name;                  ///< of its plan
  std::vector<std::string> remarks;  ///< on it
  /// Of a search that has been made already.
  struct Search {
    std::optional<Plan> plan;
  };
  std::optional<Search> search = {};
};
using Trials = std::vector<Trial>;
/// Whether it is worth a search where there is a plan already that the host holds.
[[nodiscard]] bool may_beat(const Trial& trial, const Plan& plan);

/// None: nothing fits.
[[nodiscard]] std::optional<Trial> trial_of(const Planning& planning, StepCase of, std::string name,
                                            std::vector<std::string> remarks);
/// Made beside each other, in their order.
[[nodiscard]] Trials made_trials(std::size_t count,
                                 const std::function<std::optional<Trial>(std::size_t)>& made);

/// Each better than `known`, if there is one, and than those before it; of one name the best.
[[nodiscard]] std::vector<Plan> better_plans(const Planning& planning, Trials trials, Effort effort,
                                             const Plan* known = nullptr);

/// The best plan of a few of them and of one that is known; none: none has one.
[[nodiscard]] std::optional<Plan> best_of(const Planning& planning, Trials trials, Effort effort,
                                          std::optional<Plan> known = std::nullopt);

}  // namespace stowage
