#include "planner/propose/trials.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <utility>

#include "estimator/base/parallel.hpp"
#include "planner/assemble/fit_schedule.hpp"
#include "planner/propose/fit_host.hpp"

namespace stowage {
namespace {

constexpr std::int64_t filled = 62;  // 64ths of the budget: the rest is for packing
constexpr int most_searched = 3, most_searched_of_small = 6;
constexpr double trial_share = 0.1;  // of the work that is left

// A forecast is made with less than the budget, and its step may be longer than the one that a
// search finds. Below so many nodes a search takes milliseconds, so it is made even for a much
// longer forecast.
constexpr std::size_t few_nodes = 500;
constexpr double forecast_tolerance = 1.1, forecast_tolerance_of_small = 1.5;

bool is_small(const Trial& trial) { return trial.of.step.graph->nodes.size() < few_nodes; }

// A step that is longer with everything on the GPU is hardly ever shorter with copies.
bool cannot_beat(const Trial& trial, const Plan& plan) {
  return trial.of.all_gpu.seconds >= plan.totals.step_seconds;
}

}  // namespace

bool may_beat(const Trial& trial, const Plan& plan) {
  const double tolerance = is_small(trial) ? forecast_tolerance_of_small : forecast_tolerance;
  return trial.forecast < HostRank{false, tolerance * plan.totals.step_seconds};
}

Result<StepCase> case_of(const Planning& planning, StepGraph graph) {
  return make_case(planning, std::make_shared<const StepGraph>(std::move(graph)));
}

std::optional<Plan> plan_of(const Planning& planning, const StepCase& of, const std::string& name,
                            const PlanSearch& search) {
  auto plan = cheapest_plan(planning, of, name, search);
  if (!plan) return std::nullopt;
  set_pcie_bound(planning, of, *plan);
  return *std::move(plan);
}

std::optional<StepForecast> forecast_step(const Planning& planning, const StepCase& of) {
  WorkBudget part = planning.work.part(trial_share);
  SolveOptions options = planning.solve_options(part);
  options.branches = false;
  options.most_others = 0;
  options.limits = options.budget.sixty_fourths(filled).step_limits(of.placed.operations.size());
  auto solution = solve(of.placed, options);
  if (!solution) return std::nullopt;
  const PlacedStep placed(of.step, of.placed, solution->placement);
  part.spend(work_of_schedule(placed));
  const CopySchedule schedule = widest_schedule(placed, options.budget);
  const HostClaims claims = claim_host(placed, schedule);
  PlanTotals totals;
  totals.host_peak = live_peak(claims.pinned, placed.steps());
  totals.pageable_peak = live_peak(claims.pageable, placed.steps());
  return StepForecast{host_rank(planning.request.host, totals, placed.step_seconds(schedule)),
                      std::move(solution->placement)};
}

std::optional<Trial> trial_of(const Planning& planning, StepCase of, std::string name,
                              std::vector<std::string> remarks) {
  auto forecast = forecast_step(planning, of);
  if (!forecast) return std::nullopt;
  return Trial{std::move(of), forecast->rank, std::move(forecast->placement), std::move(name),
               std::move(remarks)};
}

Trials make_trials(const Planning& planning, std::size_t count, const MakeTrial& made) {
  std::vector<std::optional<Trial>> all(count);
  {
    std::deque<WorkBudget> parts = equal_parts(
        planning.work, count, 1.0 / static_cast<double>(std::max<std::size_t>(count, 1)));
    for_each_index(count, [&](std::size_t i) { all[i] = made(Planning(planning, parts[i]), i); });
  }
  Trials trials;
  for (std::optional<Trial>& trial : all) {
    if (trial) trials.push_back(*std::move(trial));
  }
  return trials;
}

std::vector<Plan> better_plans(const Planning& planning, Trials trials, Effort effort,
                               const Plan* known) {
  const Host& host = planning.request.host;
  std::ranges::stable_sort(trials, {}, &Trial::forecast);
  std::vector<Plan> plans;
  int searched = 0;
  for (Trial& trial : trials) {
    const Plan* best = plans.empty() ? known : &plans.back();
    const bool is_good = best != nullptr && host_holds(host, best->totals);
    if (is_good && (!may_beat(trial, *best) || cannot_beat(trial, *best))) continue;
    if (!trial.search) {
      const int most = is_small(trial) ? most_searched_of_small : most_searched;
      if (best != nullptr && searched++ >= most) break;
      if (planning.is_cancelled() || (best != nullptr && planning.is_over())) {
        planning.gaps.add_untried(trial.name);
        continue;
      }
      trial.search = Trial::Search{plan_of(
          planning, trial.of, trial.name, {.effort = effort, .first_candidate = &trial.placement})};
    }
    std::optional<Plan>& plan = trial.search->plan;
    if (!plan || (best != nullptr && !is_better(*plan, *best, host))) continue;
    plan->name = std::move(trial.name);
    std::ranges::move(trial.remarks, std::back_inserter(plan->remarks));
    if (!plans.empty() && plans.back().name == plan->name) plans.pop_back();
    plans.push_back(*std::move(plan));
  }
  return plans;
}

std::optional<Plan> best_of(const Planning& planning, Trials trials, Effort effort,
                            std::optional<Plan> known) {
  std::vector<Plan> better =
      better_plans(planning, std::move(trials), effort, known ? &*known : nullptr);
  if (better.empty()) return known;
  return std::move(better.back());
}

}  // namespace stowage
