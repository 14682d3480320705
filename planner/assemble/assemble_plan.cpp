#include "planner/assemble/assemble_plan.hpp"

#include <utility>

#include "estimator/base/live_sum.hpp"
#include "planner/assemble/fit_schedule.hpp"
#include "planner/assemble/lane_schedule.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

/// The plan with nodes on their devices and with their engines; nothing is scheduled yet.
Plan described(const PlacedStep& placed) {
  Plan plan;
  plan.step = placed.step;
  plan.step.engines.assign(plan.step.engines.size(), {});
  plan.step.benchmark.clear();
  plan.step.workspace_origin = WorkspaceOrigin::none;
  for (std::int32_t i = 0; i < placed.steps(); ++i) {
    const bool on_gpu = placed.on_gpu(i);
    PlannedNode node{on_gpu ? gpu_processor : cpu_processor, "", Bytes(), Bytes()};
    const auto& engines = placed.step.engines[at(i)];
    if (on_gpu && !engines.empty()) {
      const Engine& engine = engines[at(placed.placement.engine[at(i)])];
      node.engine = engine.name;
      node.workspace = engine.workspace;
    }
    plan.nodes.push_back(std::move(node));
  }
  return plan;
}

void take_windows(const CopySchedule& schedule, Plan& plan) {
  for (std::int32_t t = 0; t < std::ssize(plan.nodes); ++t) {
    const StepRange& window = schedule.windows[at(t)];
    if (window != StepRange::single(t)) plan.nodes[at(t)].window = window;
  }
}

void take_transfers(const PlacedStep& placed, const CopySchedule& schedule, Plan& plan) {
  plan.transfers = copies_of(placed.problem, placed.moves, schedule).transfers;
  for (const Transfer& transfer : plan.transfers) {
    const bool up = transfer.link == upload_link;
    (up ? plan.totals.h2d : plan.totals.d2h) += placed.step.bytes(transfer.storage);
  }
}

Bytes gpu_peak(const Plan& plan) {
  const auto steps = static_cast<std::int32_t>(plan.nodes.size());
  LiveSum sum(steps);
  for (const Residence& residence : plan.in(gpu_memory)) {
    sum.add(residence.steps, plan.step.bytes(residence.storage));
  }
  for (std::int32_t t = 0; t < steps; ++t)
    sum.add(StepRange::single(t), plan.nodes[at(t)].workspace);
  return peak(std::move(sum).by_step()).bytes;
}

void take_gpu_places(FittedSchedule& fitted, Plan& plan) {
  plan.in(gpu_memory) = residences(fitted.claims, fitted.packing);
  for (const auto& [request, node] : fitted.claims.workspaces) {
    plan.nodes[at(node)].workspace_offset = fitted.packing.offsets[at(request)];
  }
  plan.totals.arena_lower_bound = fitted.packing.lower_bound;
  plan.totals.gpu_peak = gpu_peak(plan);
}

void take_host_places(const PlacedStep& placed, const CopySchedule& schedule,
                      const AssemblyOptions& assembly, Plan& plan) {
  const HostClaims host = claim_host(placed, schedule);
  const PackingOptions options{
      .alignment = arena_alignment, .effort = assembly.arena_effort, .target_peak = Bytes()};
  const ArenaPacking pinned = pack_arena(host.pinned.requests, options);
  const ArenaPacking pageable = pack_arena(host.pageable.requests, options);
  for (const ArenaPacking* packing : {&pinned, &pageable}) {
    if (assembly.work != nullptr) assembly.work->spend(work_of_packing(*packing));
  }
  plan.in(pinned_memory) = residences(host.pinned, pinned);
  plan.in(pageable_memory) = residences(host.pageable, pageable);
  plan.totals.host_peak = pinned.peak;
  plan.totals.pageable_peak = pageable.peak;
}

}  // namespace

Plan assemble_plan(const SizedStep& step, const ResidencyProblem& problem,
                   const Placement& placement, const AssemblyOptions& options) {
  const PlacedStep placed(step, problem, placement);
  ScheduleOutcome outcome = fit_schedule(placed, options);
  Plan plan = described(placed);
  plan.totals.arena = outcome.arena;
  if (!outcome.fitted) return plan;
  const CopySchedule& schedule = outcome.fitted->schedule;
  take_gpu_places(*outcome.fitted, plan);
  take_windows(schedule, plan);
  take_transfers(placed, schedule, plan);
  take_host_places(placed, schedule, options, plan);
  plan.totals.step_seconds = placed.step_seconds(schedule);
  return plan;
}

ArenaBound bound_placement(const SizedStep& step, const ResidencyProblem& problem,
                           const Placement& placement, GpuBudget budget) {
  const PlacedStep placed(step, problem, placement);
  return bound_arena(claim_gpu(placed, placed.own_stays()).requests, budget.bytes);
}

}  // namespace stowage
