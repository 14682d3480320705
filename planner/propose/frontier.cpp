#include "planner/propose/frontier.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "planner/propose/certify.hpp"
#include "planner/propose/rewritten_steps.hpp"
#include "planner/propose/search_passes.hpp"
#include "planner/propose/step_plans.hpp"
#include "planner/solve/placement_search.hpp"

namespace stowage {
namespace {

/// What a point takes of a plan.
struct FoundStep {
  std::shared_ptr<const StepGraph> graph;
  FrontierPoint point;
  Bytes arena;
};

FoundStep found_step(const Plan& plan, GpuBudget budget) {
  const PlanTotals& totals = plan.totals;
  return {
      plan.step.graph,
      {budget, plan.name, totals.step_seconds, totals.step_lower_bound_seconds, pcie_bytes(plan)},
      totals.arena};
}

void keep_shorter(std::optional<Plan> plan, std::optional<Plan>& best) {
  if (!plan || (best && plan->totals.step_seconds >= best->totals.step_seconds)) return;
  best = std::move(plan);
}

/// The shortest step within the budget of `planning`; none: nothing fits.
Result<std::optional<Plan>> shortest(const Planning& planning) {
  auto whole = make_case(planning, planning.document.graph);
  if (!whole) return tl::unexpected(whole.error());
  std::optional<Plan> all_gpu = fitting_all_gpu(planning, *whole);
  const bool fits = all_gpu.has_value();
  std::optional<Plan> best;
  if (auto cheapest = cheapest_plan(planning, *whole, "cheapest", {.effort = Effort::quick})) {
    if (fits) keep_shorter(all_gpu_plan(planning, *whole, *std::move(all_gpu), *cheapest), best);
    keep_shorter(*std::move(cheapest), best);
  }
  if (fits || planning.is_cancelled()) return best;
  Trials trials = early_updates_trials(planning, *whole);
  if (planning.request.levers.recompute && !planning.is_cancelled()) {
    std::ranges::move(recompute_trials(planning, *whole, Effort::quick),
                      std::back_inserter(trials));
  }
  keep_shorter(best_of(planning, std::move(trials), Effort::quick), best);
  return best;
}

/// A bound on the step of every plan of `graph` within the budget of `planning`.
std::optional<double> bound_of_step(const Planning& planning,
                                    std::shared_ptr<const StepGraph> graph) {
  const auto of = make_case(planning, std::move(graph));
  if (!of) return std::nullopt;
  const ResidencyProblem& bounded = of->open ? of->open->problem : of->placed;
  const GpuBudget budget = planning.request.budget;
  if (!budget.fits(memory_floor(bounded).bytes)) return std::nullopt;
  const LaneBalance balance =
      balance_lanes(bounded, nothing_resident(bounded), {.budget = budget, .work = &planning.work});
  return larger_bound(of->scope, balance, split_bound(bounded, budget)).seconds;
}

class FrontierSearch {
 public:
  FrontierSearch(const PlanRequest& request, WorkspaceSource& workspaces,
                 const ProposalOptions& options, int points)
      : request_(request), workspaces_(workspaces), options_(options), points_(points) {
    options_.work.units /= std::max(points, 1);
  }

  /// Plans that points may have.
  void know(const std::vector<Plan>& plans) {
    for (const Plan& plan : plans) known_.push_back(found_step(plan, plan.inputs.budget));
  }

  Result<Frontier> run(Bytes least, Bytes most) && {
    for (int i = 0; i < points_; ++i) {
      const std::int64_t part = points_ > 1 ? (most - least).count() / (points_ - 1) * i : 0;
      const GpuBudget budget(i + 1 == points_ ? most : least + Bytes(part));
      if (i > 0 && budget == last_) continue;
      last_ = budget;
      if (is_stopped()) {
        ++result_.left_out;
      } else if (auto added = add_point(budget); !added) {
        return tl::unexpected(std::move(added.error()));
      }
    }
    lower_rising_bounds();
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool is_stopped() const {
    return (options_.cancelled && options_.cancelled()) ||
           (options_.out_of_time && options_.out_of_time());
  }

  Result<void> add_point(GpuBudget budget) {
    PlanRequest at = request_;
    at.budget = budget;
    bool is_first = true;
    for (const Work work : works_of_passes(options_)) {
      if (!std::exchange(is_first, false) && is_stopped()) break;
      const Planning planning(at, workspaces_, options_, work);
      auto plan = shortest(planning);
      if (!plan) return tl::unexpected(std::move(plan.error()));
      if (*plan) known_.push_back(found_step(**plan, budget));
    }
    const FoundStep* best = nullptr;
    for (const FoundStep& step : known_) {
      if (!budget.fits(step.arena)) continue;
      if (best == nullptr || step.point.step_seconds < best->point.step_seconds) best = &step;
    }
    if (best == nullptr) return {};
    FrontierPoint point = best->point;
    if (point.budget != budget) {
      point.budget = budget;
      const Planning planning(at, workspaces_, options_);
      point.step_lower_bound_seconds = bound_of_step(planning, best->graph);
      if (point.step_lower_bound_seconds) {
        *point.step_lower_bound_seconds =
            std::min(*point.step_lower_bound_seconds, point.step_seconds);
      }
    }
    result_.points.push_back(std::move(point));
    return {};
  }

  /// Lowers bounds that rise with the budget; it is always correct to lower a bound. The bound at a
  /// larger budget may come out higher than that at a smaller one, where the two are of different
  /// steps or one was not maximised as far.
  void lower_rising_bounds() {
    std::optional<double> least;
    for (FrontierPoint& point : result_.points) {
      std::optional<double>& bound = point.step_lower_bound_seconds;
      if (!bound) continue;
      if (least) bound = std::min(*bound, *least);
      least = bound;
    }
  }

  const PlanRequest& request_;
  WorkspaceSource& workspaces_;
  ProposalOptions options_;
  int points_;
  GpuBudget last_;
  std::vector<FoundStep> known_;
  Frontier result_;
};

}  // namespace

Result<Frontier> frontier(const PlanRequest& request, WorkspaceSource& workspaces,
                          const ProposalOptions& options, const std::vector<Plan>& known,
                          int points) {
  const Planning planning(request, workspaces, options);
  auto whole = make_case(planning, planning.document.graph);
  if (!whole) return tl::unexpected(whole.error());
  const Bytes most = assemble_all_gpu(planning, *whole).totals.arena;
  const Bytes least = std::min(memory_floor(whole->on_gpu).bytes, most);
  FrontierSearch search(request, workspaces, options, points);
  search.know(known);
  return std::move(search).run(least, most);
}

}  // namespace stowage
