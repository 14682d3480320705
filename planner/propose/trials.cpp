#include "planner/propose/trials.hpp"

#include <memory>
#include <utility>

#include "planner/propose/fit_host.hpp"

namespace stowage {

Result<StepCase> case_of(const Planning& planning, StepGraph graph) {
  auto of = make_case(planning, std::make_shared<const StepGraph>(std::move(graph)));
  if (of) (void)assemble_all_gpu(planning, *of);
  return of;
}

void try_step(const Planning& planning, StepGraph graph, std::optional<Trial>& best) {
  auto of = case_of(planning, std::move(graph));
  if (!of) return;
  auto plan = cheapest_plan(planning, *of, Effort::look);
  if (!plan || (best && !is_better(*plan, best->plan, planning.request.host))) return;
  best.emplace(Trial{*std::move(of), *std::move(plan)});
}

Plan searched_on(const Planning& planning, Trial trial, Effort effort) {
  if (!planning.is_cancelled()) {
    auto plan = cheapest_plan(planning, trial.of, effort);
    if (plan && is_better(*plan, trial.plan, planning.request.host)) {
      trial.plan = *std::move(plan);
    }
  }
  if (effort == Effort::full) set_pcie_bound(planning, trial.of, trial.plan);
  return std::move(trial.plan);
}

}  // namespace stowage
