#include "planner/propose/least_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "estimator/arena/arena.hpp"
#include "estimator/rewrite/early_updates.hpp"
#include "estimator/rewrite/micro_batches.hpp"
#include "estimator/rewrite/recompute.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/assemble/plan_within.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/propose/fit_host.hpp"
#include "planner/propose/rewritten_steps.hpp"
#include "planner/propose/step_case.hpp"
#include "planner/recompute/choose_recomputation.hpp"
#include "planner/solve/placement_search.hpp"

namespace stowage {
namespace {

constexpr std::int64_t resolution = 64;  // of the smallest budget known, where it is halved down to

/// The totals with as little in the arena as any placement keeps.
PlanTotals least_totals(const StepCase& of) {
  const Bytes floor = round_up(memory_floor(of.placed).bytes, arena_alignment);
  const Plan plan =
      assemble_plan(of.step, of.placed, nothing_resident(of.placed),
                    {.budget = floor, .arena_effort = 0, .last_effort = last_packing_effort});
  return plan.totals;
}

class LeastBudgetSearch {
 public:
  LeastBudgetSearch(const Planning& planning, const StepCase& whole)
      : planning_(planning), whole_(whole) {}

  std::optional<LeastBudget> run() && {
    offer(least_totals(whole_), "cheapest");
    const StepGraph& step = *whole_.step.graph;
    if (auto early = with_early_updates(step)) offer(*std::move(early), "early-updates");
    if (!changes_training_in_parts(step)) try_parts();
    const Levers& levers = planning_.request.levers;
    if (levers.recompute && !levers.activations) bisect_recomputation();
    if (planning_.is_cancelled()) return std::nullopt;
    return best_;
  }

 private:
  void offer(const PlanTotals& totals, std::string plan) {
    const Bytes bytes = std::max(totals.arena, arena_alignment);
    if (best_ && bytes >= best_->bytes) return;
    best_ = LeastBudget{bytes, std::move(plan), host_holds(planning_.request.host, totals)};
  }
  void offer(StepGraph graph, std::string plan) {
    if (planning_.is_over()) return;
    const auto of = make_case(planning_, std::make_shared<const StepGraph>(std::move(graph)));
    if (of) offer(least_totals(*of), std::move(plan));
  }

  void try_parts() {
    const std::vector<std::int64_t> counts = part_counts(planning_, whole_);
    if (counts.empty()) return;
    for (const std::int64_t parts : {counts.front(), counts.back()}) {
      auto rewritten = with_micro_batches(*whole_.step.graph, parts);
      if (rewritten) offer(*std::move(rewritten), parts_name(*whole_.step.graph, parts));
    }
  }

  /// The totals that recomputation reaches at this budget, searched as in recompute_trials.
  [[nodiscard]] std::optional<PlanTotals> recomputed_within(GpuBudget budget) const {
    const auto points = choose_recomputation(
        whole_.step, planning_.rates,
        {.budget = budget, .pins = whole_.pins, .swapped = {0}, .work = &planning_.work});
    for (const RecomputePoint& point : points) {
      auto rewritten = with_recomputation(*whole_.step.graph, point.values);
      if (!rewritten) continue;
      auto early = with_early_updates(*rewritten);
      StepGraph graph = early ? *std::move(early) : *std::move(rewritten);
      const auto of = make_case(planning_, std::make_shared<const StepGraph>(std::move(graph)));
      if (!of) continue;
      PlanTotals totals = least_totals(*of);
      if (!budget.fits(totals.arena)) continue;
      totals.arena = budget.bytes;  // with less the search may choose otherwise
      return totals;
    }
    return std::nullopt;
  }

  void bisect_recomputation() {
    Bytes without, within = best_->bytes;
    while (!planning_.is_over() && (within - without).count() > within.count() / resolution) {
      const Bytes middle = round_up(Bytes((without + within).count() / 2), arena_alignment);
      const auto totals = recomputed_within(middle);
      (totals ? within : without) = middle;
      if (totals) offer(*totals, "recompute");
    }
  }

  const Planning& planning_;
  const StepCase& whole_;
  std::optional<LeastBudget> best_;
};

}  // namespace

Result<std::optional<LeastBudget>> least_budget(const PlanRequest& request,
                                                WorkspaceSource& workspaces,
                                                const ProposalOptions& options) {
  const Planning planning(request, workspaces, options);
  const auto whole = make_case(planning, planning.document.graph);
  if (!whole) return tl::unexpected(whole.error());
  return LeastBudgetSearch(planning, *whole).run();
}

}  // namespace stowage
