#include "planner/propose/step_case.hpp"

#include <fmt/format.h>

#include <cassert>
#include <utility>

#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/propose/certify.hpp"
#include "planner/propose/settle_operators.hpp"

namespace stowage {
namespace {

constexpr double settling_share = 0.4;      // of the work that is left
constexpr std::int64_t work_of_a_node = 1;  // in a case: sizes, pins, problems

Rates byte_rates() {
  Rates rates;
  rates.gpu_launch = rates.cpu_launch = rates.h2d_latency = rates.d2h_latency = 0;
  rates.h2d_bandwidth = rates.d2h_bandwidth = problem_bytes_a_second;
  return rates;
}

StepDocument kept_document(StepDocument document) {
  document.evaluation = nullptr;
  if (!document.fixed_batch) document.batch.reset();
  for (Layer& layer : document.layers) layer.flops = layer.saved_bytes = 0;
  document.has_costs = false;
  document.result_bytes.reset();
  document.warnings.clear();
  return document;
}

bool operators_may_move(const PlanRequest& request) {
  return request.levers.operators && request.host.cpu_flops > 0;
}

ProblemOptions problem_options(const PlanRequest& request, const StepPins& pins) {
  const Levers& levers = request.levers;
  return {.compute_on_gpu = !operators_may_move(request),
          .all_on_gpu = !operators_may_move(request) && !levers.optimizer,
          .updates_on_gpu = !levers.optimizer,
          .pins = &pins,
          .keep_activations = !levers.activations && !levers.saved,
          .keep_unsaved = !levers.activations && levers.saved,
          .keep_weights = !levers.weights,
          .keep_state = !levers.optimizer};
}

Pinned pinned_by(const PlanRequest& request) {
  if (operators_may_move(request)) return Pinned::nothing;
  return request.levers.optimizer ? Pinned::computation : Pinned::all_nodes;
}

/// Whether something has to stay on the GPU between kernels that may be elsewhere.
bool keeps_beside_moving_kernels(const PlanRequest& request) {
  const Levers& levers = request.levers;
  return (operators_may_move(request) || levers.optimizer) &&
         !(levers.activations && levers.weights && levers.optimizer);
}

/// Settles the operators of `of`. If the budget is below the floor, nothing changes: solving
/// `placed` reports it.
void settle(const Planning& planning, ProblemOptions options, StepCase& of) {
  const auto settled = [&](const std::vector<Device>& device) {
    options.devices = &device;
    return make_problem(of.step, planning.rates, options);
  };
  WorkBudget part = planning.work.part(settling_share);
  auto operators = settle_operators(of.placed, settled, planning.solve_options(part));
  if (!operators) return;
  ResidencyProblem problem = settled(operators->device);
  of.open =
      OpenProblem{std::exchange(of.placed, std::move(problem)), operators->cost_lower_bound_seconds,
                  operators->all_gpu_cost_seconds, std::move(operators->proof)};
}

}  // namespace

struct Planning::Owned {
  StepDocument document;
  Rates rates;
  WorkBudget work;
  SearchGaps gaps;
};

Planning::Planning(const PlanRequest& planned, WorkspaceSource& source, const ProposalOptions& how,
                   Work limit)
    : owned_(new Owned{.document = kept_document(planned.document),
                       .rates = make_rates(planned.card, planned.host, planned.measured.get()),
                       .work = WorkBudget(limit, {how.cancelled, how.out_of_time}),
                       .gaps = {}}),
      request(planned),
      workspaces(source),
      options(how),
      document(owned_->document),
      rates(owned_->rates),
      work(owned_->work),
      gaps(owned_->gaps) {}

Planning::Planning(const PlanRequest& planned, WorkspaceSource& source, const ProposalOptions& how)
    : Planning(planned, source, how, how.work) {}

Planning::Planning(const Planning& whole, WorkBudget& part)
    : request(whole.request),
      workspaces(whole.workspaces),
      options(whole.options),
      document(whole.document),
      rates(whole.rates),
      work(part),
      gaps(whole.gaps) {}

Planning::~Planning() = default;

SolveOptions Planning::solve_options(WorkBudget& part) const {
  return {.budget = request.budget, .target_gap = options.target_gap, .work = &part};
}

void SearchGaps::add_tried(const std::string& name) {
  const std::lock_guard lock(mutex_);
  tried_.insert(name);
}

void SearchGaps::add_untried(const std::string& name) {
  const std::lock_guard lock(mutex_);
  untried_.insert(name);
}

void SearchGaps::add_cut_short(const std::string& name) {
  const std::lock_guard lock(mutex_);
  cut_short_.insert(name);
}

SearchOutcome SearchGaps::outcome(Work limit, Work spent) const {
  const std::lock_guard lock(mutex_);
  SearchOutcome outcome{.limit = limit, .spent = spent};
  std::set<std::string> cut_short = cut_short_;
  for (const std::string& name : untried_) {
    if (tried_.contains(name)) {
      cut_short.insert(name);
    } else {
      outcome.untried.push_back(name);
    }
  }
  outcome.cut_short.assign(cut_short.begin(), cut_short.end());
  return outcome;
}

Result<StepCase> make_case(const Planning& planning, std::shared_ptr<const StepGraph> graph) {
  const PlanRequest& request = planning.request;
  const int parts = graph->settings.micro_batches;
  const std::optional<std::int64_t> micro_batch = micro_batch_of(request.batch, parts);
  if (!micro_batch) {
    return failure(fmt::format("{} micro-batches cannot share a batch of {} equally", parts,
                               request.batch.samples));
  }
  auto step = size_step(std::move(graph), *micro_batch, planning.workspaces);
  if (!step) return tl::unexpected(step.error());
  planning.work.spend(work_of_a_node * static_cast<std::int64_t>(step->graph->nodes.size()));
  StepCase result;
  result.step = std::move(*step);
  auto pins = apply_pins(*result.step.graph, planning.document.layers, request.pins);
  if (!pins) return tl::unexpected(std::move(pins.error()));
  result.pins = *std::move(pins);
  result.pinned = pinned_by(request);
  ProblemOptions options = problem_options(request, result.pins);
  result.placed = make_problem(result.step, planning.rates, options);
  result.scope = scope_of(options);
  if (keeps_beside_moving_kernels(request)) settle(planning, options, result);
  options.all_on_gpu = true;
  result.on_gpu = make_problem(result.step, planning.rates, options);
  result.all_gpu = all_gpu_step(result.step, result.on_gpu, request.budget);
  return result;
}

void follow_budget(const Planning& planning, StepCase& of) {
  assert(!of.open);
  of.all_gpu = all_gpu_step(of.step, of.on_gpu, planning.request.budget);
}

Plan assemble_all_gpu(const Planning& planning, const StepCase& of) {
  return assemble_plan(of.step, of.on_gpu, all_gpu_placement(of.on_gpu, planning.request.budget),
                       {.budget = GpuBudget::unlimited()});
}

std::optional<Plan> fitting_all_gpu(const Planning& planning, const StepCase& of) {
  const GpuBudget& budget = planning.request.budget;
  if (!budget.fits(of.all_gpu.least_arena)) return std::nullopt;
  Plan plan = assemble_all_gpu(planning, of);
  if (!budget.fits(plan.totals.arena)) return std::nullopt;
  return plan;
}

ByteProblem byte_problem(const Planning& planning, const StepCase& of, const ByteOptions& how) {
  ProblemOptions options = problem_options(planning.request, of.pins);
  // If operations could run on either side, a plan with everything on the CPU would move nothing.
  options.compute_on_gpu = true;
  options.all_on_gpu = how.updates_on_gpu;
  if (!how.kept) {
    options.keep_activations = options.keep_unsaved = false;
    options.keep_weights = options.keep_state = false;
  }
  return {make_problem(of.step, byte_rates(), options), scope_of(options)};
}

}  // namespace stowage
