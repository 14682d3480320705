#include "planner/propose/frontier.hpp"

#include <algorithm>
#include <iterator>

#include "planner/propose/rewritten_steps.hpp"
#include "planner/propose/step_plans.hpp"

namespace stowage {
namespace {

void keep_shorter(std::optional<Plan> plan, std::optional<Plan>& best) {
  if (!plan || (best && plan->totals.step_seconds >= best->totals.step_seconds)) return;
  best = std::move(plan);
}

/// The shortest step within the request's budget; none: nothing fits.
Result<std::optional<Plan>> shortest(const PlanRequest& request, WorkspaceSource& workspaces,
                                     const ProposalOptions& options) {
  const Planning planning(request, workspaces, options);
  auto whole = make_case(planning, planning.document.graph);
  if (!whole) return tl::unexpected(whole.error());
  std::optional<Plan> all_gpu = fitting_all_gpu(planning, *whole);
  const bool fits = all_gpu.has_value();
  std::optional<Plan> best;
  if (auto cheapest = cheapest_plan(planning, *whole, {.effort = Effort::quick})) {
    if (fits) keep_shorter(all_gpu_plan(planning, *whole, *std::move(all_gpu), *cheapest), best);
    keep_shorter(*std::move(cheapest), best);
  }
  if (fits || planning.is_cancelled()) return best;
  Trials trials = early_updates_trials(planning, *whole);
  if (request.levers.recompute && !planning.is_cancelled()) {
    std::ranges::move(recompute_trials(planning, *whole, Effort::quick),
                      std::back_inserter(trials));
  }
  keep_shorter(best_of(planning, std::move(trials), Effort::quick), best);
  return best;
}

}  // namespace

Result<std::vector<FrontierPoint>> frontier(const PlanRequest& request, WorkspaceSource& workspaces,
                                            const ProposalOptions& options, int points) {
  const Planning planning(request, workspaces, options);
  auto whole = make_case(planning, planning.document.graph);
  if (!whole) return tl::unexpected(whole.error());
  const std::int64_t most = assemble_all_gpu(planning, *whole).totals.arena.count();
  const std::int64_t least = std::min(memory_floor(whole->on_gpu).bytes.count(), most);
  std::vector<FrontierPoint> result;
  for (int i = 0; i < points && !planning.is_cancelled(); ++i) {
    const std::int64_t part = points > 1 ? (most - least) / (points - 1) * i : 0;
    PlanRequest at = request;
    at.budget = Bytes(i + 1 == points ? most : least + part);
    if (!result.empty() && at.budget == result.back().budget) continue;
    const auto plan = shortest(at, workspaces, options);
    if (!plan) return tl::unexpected(plan.error());
    if (!*plan) continue;
    const PlanTotals& totals = (*plan)->totals;
    FrontierPoint point{at.budget, (*plan)->name, totals.step_seconds,
                        totals.step_lower_bound_seconds, pcie_bytes(**plan)};
    // A plan within a smaller budget is also within this one.
    if (!result.empty() && result.back().step_seconds < point.step_seconds) {
      point = result.back();
      point.budget = at.budget;
    }
    result.push_back(std::move(point));
  }
  return result;
}

}  // namespace stowage
