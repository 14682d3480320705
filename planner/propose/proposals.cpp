#include "planner/propose/proposals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/propose/certify.hpp"
#include "planner/propose/fit_host.hpp"
#include "planner/propose/order_plan.hpp"
#include "planner/propose/rewritten_steps.hpp"
#include "planner/propose/segment_plans.hpp"
#include "planner/propose/step_plans.hpp"

namespace stowage {
namespace {

/// The plan of least cost, or `other` where the simulation, which ranks, shows that to be faster.
Plan faster(const Plan& cheapest, const Plan& other, const Host& host) {
  if (!is_better(other, cheapest, host)) return cheapest;
  Plan plan = other;
  plan.name = cheapest.name;
  plan.pinned = cheapest.pinned;
  plan.totals.proved_optimal = false;
  return plan;
}

/// The plan of fewest bytes, or the cheapest one where that computes on the GPU alone and has
/// turned out to move fewer. The bound on bytes is that of the solve which minimised them.
Plan fewer_bytes(Plan fewest, const Plan& cheapest) {
  if (computes_on_cpu(cheapest) || pcie_bytes(cheapest) >= pcie_bytes(fewest)) return fewest;
  if (!keeps_as_if_pinned(cheapest.certificate->cost->scope)) return fewest;
  Plan plan = cheapest;
  plan.name = fewest.name;
  plan.pinned = fewest.pinned;
  plan.totals.pcie_lower_bound = fewest.totals.pcie_lower_bound;
  plan.certificate->transfers = fewest.certificate->transfers;
  return plan;
}

void add_if_better(std::optional<Plan> plan, const Host& host, std::vector<Plan>& plans) {
  if (!plan) return;
  const bool is_best =
      std::ranges::all_of(plans, [&](const Plan& other) { return is_better(*plan, other, host); });
  if (is_best) plans.push_back(*std::move(plan));
}

void add_rewritten(const Planning& planning, const StepCase& whole, std::vector<Plan>& plans) {
  const bool trains = whole.step.graph->settings.mode == Mode::train;
  if (trains && !planning.is_cancelled())
    add_if_better(early_updates_plan(planning, whole), planning.request.host, plans);
  if (!planning.is_cancelled())
    add_if_better(order_plan(planning, whole), planning.request.host, plans);
  if (trains && planning.request.levers.recompute && !planning.is_cancelled()) {
    add_if_better(recompute_plan(planning, whole), planning.request.host, plans);
  }
  if (planning.is_cancelled()) return;
  if (auto parts = parts_plan(planning, whole)) plans.push_back(*std::move(parts));
  if (planning.is_cancelled()) return;
  add_if_better(segments_plan(planning, whole), planning.request.host, plans);
}

/// The plans of the step as it is.
std::vector<Plan> plans_as_it_is(const Planning& planning, const StepCase& whole, Plan all_gpu,
                                 Plan cheapest) {
  std::vector<Plan> plans;
  if (all_gpu.totals.arena <= planning.request.budget) {
    plans.push_back(all_gpu_plan(planning, whole, std::move(all_gpu), cheapest));
  }
  auto fewest = min_pcie_plan(planning, whole, cheapest);
  set_pcie_bound(planning, whole, cheapest, fewest ? std::optional(fewest->bound) : std::nullopt);
  std::optional<Plan> fewest_bytes;
  if (fewest) fewest_bytes = fewer_bytes(std::move(fewest->plan), cheapest);
  Plan fastest = fewest_bytes ? faster(cheapest, *fewest_bytes, planning.request.host) : cheapest;
  if (!plans.empty()) fastest = faster(fastest, plans.front(), planning.request.host);  // all-gpu
  plans.push_back(std::move(fastest));
  // Without it the updates alone break the budget: they have to run on the CPU.
  if (fewest_bytes) plans.push_back(*std::move(fewest_bytes));
  return plans;
}

}  // namespace

Result<Bytes> least_whole_arena(const PlanRequest& request, WorkspaceSource& workspaces) {
  const int parts = request.document.graph->settings.micro_batches;
  const auto micro_batch = micro_batch_of(request.batch, parts);
  if (!micro_batch) return failure("micro-batches cannot share the batch equally");
  const auto step = size_step(request.document.graph, *micro_batch, workspaces);
  if (!step) return tl::unexpected(step.error());
  const ResidencyProblem problem = make_problem(*step, make_rates(request.card, request.host),
                                                {.compute_on_gpu = true, .all_on_gpu = true});
  const Plan plan =
      assemble_plan(*step, problem, all_gpu_placement(problem), {.budget = unlimited_arena});
  return plan.totals.arena_lower_bound;
}

Result<std::vector<Plan>> make_plans(const PlanRequest& request, WorkspaceSource& workspaces,
                                     const ProposalOptions& options) {
  PlanRequest asked = request;
  const Planning planning(asked, workspaces, options);
  auto whole = make_case(planning, planning.document.graph);
  if (!whole) return tl::unexpected(whole.error());
  Plan all_gpu = assemble_all_gpu(planning, *whole);
  const bool fits = all_gpu.totals.arena <= asked.budget;
  if (fits && asked.levers == Levers{}) {
    asked.levers.operators = false;  // nobody looks for the CPU where the GPU has room
    whole = make_case(planning, planning.document.graph);
    if (!whole) return tl::unexpected(whole.error());
    all_gpu = assemble_all_gpu(planning, *whole);
  }
  if (options.has_plan && memory_floor(whole->placed).bytes <= asked.budget) options.has_plan();
  auto cheapest = cheapest_plan(planning, *whole);
  if (cheapest && planning.is_cancelled()) {
    set_trivial_pcie_bound(planning, *whole, *cheapest);
    return std::vector{*std::move(cheapest)};
  }
  std::vector<Plan> plans;
  if (cheapest) plans = plans_as_it_is(planning, *whole, std::move(all_gpu), *cheapest);
  if (!cheapest || !fits) add_rewritten(planning, *whole, plans);
  if (plans.empty()) return tl::unexpected(cheapest.error());
  if (!cheapest) {
    plans.back().remarks.push_back("without rewriting the step there is no plan: " +
                                   cheapest.error().front().message);
  }
  return plans;
}

}  // namespace stowage
