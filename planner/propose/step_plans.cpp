#include "planner/propose/step_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimator/arena/arena.hpp"
#include "estimator/base/hash.hpp"
#include "estimator/document/step_hash.hpp"
#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/assemble/plan_within.hpp"
#include "planner/assemble/shorten_step.hpp"
#include "planner/propose/certify.hpp"
#include "planner/propose/fit_host.hpp"
#include "planner/solve/search_tree.hpp"
#include "planner/solve/split_bound.hpp"

namespace stowage {
namespace {

// Shares of the work that is left for the plan.
constexpr double packing_share = 0.5;
constexpr double shortening_share = 0.8;
constexpr double host_share = 0.5;  // where the host does not hold what was found
// A first candidate whose step is at most so many times the step with everything on the GPU ends
// the search.
constexpr double as_short = 1.002;
// Shares of the work that is left for the whole search.
constexpr double bound_share = 0.2;

Bytes bytes_of_bound(double seconds) {
  // A plan moves whole bytes, so the bound is rounded up, apart from the error of the division.
  return Bytes(
      static_cast<std::int64_t>(std::ceil(std::max(0.0, seconds * problem_bytes_a_second - 0.01))));
}

/// The bound in whole bytes; the costs of its proof are in billions of bytes, so its prices are
/// converted.
ByteBound byte_bound(const BoundScope& scope, Solution solution) {
  for (BranchNode& node : solution.proof) {
    auto* leaf = std::get_if<BranchLeaf>(&node.content);
    if (leaf == nullptr) continue;
    for (MemoryPrice& p : leaf->steps) p.price *= problem_bytes_a_second;
    for (LimitPrice& p : leaf->limits) p.price *= problem_bytes_a_second;
  }
  return {bytes_of_bound(solution.cost_lower_bound_seconds),
          TreeProof{scope, std::move(solution.proof)}};
}

/// The bytes of the inputs of all micro-batches that kernels read: every plan that computes on the
/// GPU uploads them.
Bytes input_bytes(const SizedStep& step) {
  std::vector<bool> is_read(step.graph->storages.size(), false);
  for (const KernelNode& node : step.graph->nodes) {
    for (const TensorView& view : node.reads) is_read[view.storage.index()] = true;
  }
  Bytes bytes;
  for (const TensorView& input : step.graph->inputs) {
    if (is_read[input.storage.index()]) bytes += step.bytes(input.storage);
  }
  return bytes;
}

/// Whether a node that no user pinned there is on the CPU.
bool chooses_the_cpu(const Plan& plan, const StepPins& pins) {
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].processor == cpu_processor && pins.of(NodeId::of(i)) != Pin::cpu) return true;
  }
  return false;
}

ByteBound pcie_bound(const Planning& planning, const StepCase& of, bool on_gpu_alone) {
  WorkBudget part = planning.work.part(bound_share);
  SolveOptions options = planning.solve_options(part);
  options.branches = of.step.graph->nodes.size() < 1'000;
  const ByteProblem bytes =
      byte_problem(planning, of, {.updates_on_gpu = on_gpu_alone, .kept = of.scope.compute_on_gpu});
  auto solution = solve(bytes.problem, options);
  return solution ? byte_bound(bytes.scope, *std::move(solution)) : ByteBound{};
}

/// The bound of all plans that compute on the GPU: they upload the inputs. Its proof needs no
/// prices.
ByteBound input_bound(const Planning& planning, const StepCase& of) {
  return {input_bytes(of.step),
          TreeProof{byte_problem(planning, of, {.kept = of.scope.compute_on_gpu}).scope,
                    single_leaf({})}};
}

void set_byte_bound(Plan& plan, const ByteBound& bound) {
  plan.totals.pcie_lower_bound = std::min(pcie_bytes(plan), bound.bytes);
  plan.certificate->transfers = bound.proof;
}

std::string remark_on(const MeasuredTimes& times, const Card& card) {
  if (!times.is_emulated()) return fmt::format("its times are those measured on {}", times.backend);
  return fmt::format(
      "its times are those of the host's kernels on '{}', which stood in for the "
      "GPU: they say nothing about {}",
      times.host, card.name);
}

/// Fills everything except the totals that a search computes.
void describe(const Planning& planning, const StepCase& of, Plan& plan) {
  const PlanRequest& request = planning.request;
  PlanInputs& in = plan.inputs;
  in.stowage_version = request.stowage_version;
  in.model_name = planning.document.graph->model;
  if (request.description) {
    in.model_text = request.description->text;
    in.model_hash = hash_text(in.model_text);
  }
  in.step_hash = step_hash(of.step);
  in.serving = request.serving;
  in.model_options = request.model_options;
  in.card = request.card;
  in.host = request.host;
  in.available = request.available;
  in.budget = request.budget;
  plan.machine = gpu_and_host(planning.rates, of.step);
  plan.levers = request.levers;
  plan.pins = of.pins;
  plan.pins.notes.clear();
  plan.document = planning.document;
  plan.document.graph = of.step.graph;
  plan.totals.all_gpu_step_seconds = of.all_gpu.seconds;
  if (request.measured) plan.remarks.push_back(remark_on(*request.measured, request.card));
  std::ranges::move(host_remarks(request.host, plan.totals), std::back_inserter(plan.remarks));
}

/// Takes the bounds of the cheapest plan, whose solve proved them for every plan of this step.
void take_bounds(const Plan& cheapest, Plan& plan) {
  PlanTotals& totals = plan.totals;
  totals.cost_lower_bound_seconds =
      std::min(totals.cost_seconds, cheapest.totals.cost_lower_bound_seconds);
  totals.all_gpu_cost_seconds = cheapest.totals.all_gpu_cost_seconds;
  totals.step_lower_bound_seconds = cheapest.totals.step_lower_bound_seconds;
  plan.certificate = cheapest.certificate;
}

/// The plan of plan_within, or that of `first_candidate` if its step is shorter.
Result<FittedPlan> first_plan(const StepCase& of, const SolveOptions& options,
                              const Placement* first_candidate) {
  const auto solved = [&] { return plan_within(of.step, of.placed, of.placed, options); };
  if (first_candidate == nullptr) return solved();
  Plan plan = assemble_plan(of.step, of.placed, *first_candidate,
                            {.budget = options.budget, .must_fit = true, .work = options.work});
  if (!options.budget.fits(plan.totals.arena)) return solved();
  Result<FittedPlan> fitted;
  if (plan.totals.step_seconds <= as_short * of.all_gpu.seconds) {
    auto solution = solve(of.placed, options);
    if (!solution) return tl::unexpected(solution.error());
    fitted->solution = *std::move(solution);
  } else {
    fitted = solved();
    if (!fitted || fitted->plan.totals.step_seconds <= plan.totals.step_seconds) return fitted;
  }
  fitted->plan = std::move(plan);
  fitted->placement = *first_candidate;
  fitted->at_budget = false;
  return fitted;
}

std::size_t variations_at(Effort effort) {
  return effort == Effort::full ? all_variations : quick_variations;
}

}  // namespace

Bytes pcie_bytes(const Plan& plan) { return plan.totals.h2d + plan.totals.d2h; }

bool computes_on_cpu(const Plan& plan) {
  return std::any_of(plan.nodes.begin(), plan.nodes.end(),
                     [](const PlannedNode& node) { return node.processor == cpu_processor; });
}

void set_trivial_pcie_bound(const Planning& planning, const StepCase& of, Plan& plan) {
  set_byte_bound(plan, computes_on_cpu(plan) ? ByteBound{} : input_bound(planning, of));
}

// 1. Finds a first plan: of least cost, or the caller's candidate.
// 2. Bounds the step by the busiest lane and by what is away during one node.
// 3. Shortens the simulated step, and fits the plan to the host.
// 4. Fills the totals, the bounds and their certificate.
// Each search gets a share of the work that is left for the plan.
Result<Plan> cheapest_plan(const Planning& planning, const StepCase& of, const std::string& name,
                           const PlanSearch& search) {
  planning.gaps.add_tried(name);
  WorkBudget whole = planning.work.part(search.share);
  const auto within = [&](WorkBudget& part) {
    SolveOptions options = planning.solve_options(part);
    options.branches = search.effort == Effort::full;
    return options;
  };
  bool is_cut_short = false;
  Result<FittedPlan> fitted;
  {
    WorkBudget part = whole.part(packing_share);
    fitted = first_plan(of, within(part), search.first_candidate);
    is_cut_short = part.is_over();
  }
  if (!fitted) return tl::unexpected(fitted.error());
  const ResidencyProblem& bounded = of.open ? of.open->problem : of.placed;
  LaneBalance balance = balance_lanes(bounded, fitted->solution.placement,
                                      {.budget = planning.request.budget, .work = &whole});
  StepBound step_bound =
      larger_bound(of.scope, balance, split_bound(bounded, planning.request.budget));
  balance.step_lower_bound_seconds = step_bound.seconds;
  const StepTarget target{balance, of.all_gpu.seconds, variations_at(search.effort)};
  FittedPlan best;
  {
    WorkBudget part = whole.part(shortening_share);
    best = shorten_step(of.step, of.placed, within(part), target, *std::move(fitted));
    is_cut_short = is_cut_short || part.is_over();
  }
  {
    WorkBudget part = whole.part(host_share);
    best = within_host(planning.request.host, of.step, of.placed, within(part), target,
                       std::move(best));
    is_cut_short = is_cut_short || part.is_over();
  }
  if (is_cut_short) planning.gaps.add_cut_short(name);
  Plan plan = std::move(best.plan);
  describe(planning, of, plan);
  plan.name = "cheapest";
  plan.pinned = of.pinned;
  PlanTotals& totals = plan.totals;
  totals.cost_seconds = evaluate(of.placed, best.placement).cost_seconds;
  const Solution& solution = best.solution;
  totals.cost_lower_bound_seconds =
      std::min(totals.cost_seconds,
               of.open ? of.open->cost_lower_bound_seconds : solution.cost_lower_bound_seconds);
  totals.all_gpu_cost_seconds =
      of.open ? of.open->all_gpu_cost_seconds : solution.all_gpu_cost_seconds;
  totals.proved_optimal = best.at_budget && totals.cost_is_least();
  totals.step_lower_bound_seconds = std::min(totals.step_seconds, step_bound.seconds);
  plan.certificate =
      Certificate{.granule = arena_alignment,
                  .workspaces = least_workspaces(of.step),
                  .cost = TreeProof{of.scope, of.open ? of.open->proof : solution.proof},
                  .transfers = std::nullopt,
                  .step = std::move(step_bound.proof)};
  return plan;
}

Result<FewestBytes> fewest_bytes(const Planning& planning, const StepCase& of) {
  const ByteProblem bytes = byte_problem(planning, of, {.updates_on_gpu = true});
  auto fitted =
      plan_within(of.step, bytes.problem, of.on_gpu, planning.solve_options(planning.work));
  if (planning.is_over()) planning.gaps.add_cut_short("min-pcie");
  if (!fitted) return tl::unexpected(fitted.error());
  FewestBytes fewest{std::move(fitted->plan), byte_bound(bytes.scope, std::move(fitted->solution))};
  Plan& plan = fewest.plan;
  describe(planning, of, plan);
  plan.name = "min-pcie";
  plan.minimised = Minimised::bytes;
  plan.pinned = Pinned::all_nodes;
  plan.totals.cost_seconds = evaluate(of.on_gpu, fitted->placement).cost_seconds;
  return fewest;
}

Plan min_pcie_plan(FewestBytes fewest, const Plan& cheapest) {
  Plan plan = std::move(fewest.plan);
  take_bounds(cheapest, plan);
  set_byte_bound(plan, fewest.bound);
  plan.totals.proved_optimal = plan.totals.pcie_lower_bound == pcie_bytes(plan);
  return plan;
}

Plan all_gpu_plan(const Planning& planning, const StepCase& of, Plan all_gpu,
                  const Plan& cheapest) {
  describe(planning, of, all_gpu);
  all_gpu.name = "all-gpu";
  all_gpu.pinned = Pinned::all_nodes;
  PlanTotals& totals = all_gpu.totals;
  totals.cost_seconds =
      evaluate(of.on_gpu, all_gpu_placement(of.on_gpu, planning.request.budget)).cost_seconds;
  take_bounds(cheapest, all_gpu);
  // The bound is the inputs, which every plan uploads; with pins it may be more.
  set_byte_bound(all_gpu,
                 of.pins.empty() ? input_bound(planning, of) : pcie_bound(planning, of, true));
  totals.proved_optimal = totals.cost_is_least();
  return all_gpu;
}

void set_pcie_bound(const Planning& planning, const StepCase& of, Plan& plan,
                    const std::optional<ByteBound>& on_gpu_bound) {
  const bool updates_are_free = chooses_the_cpu(plan, of.pins) || !keeps_as_if_pinned(of.scope);
  if (!computes_on_cpu(plan) && pcie_bytes(plan) == input_bytes(of.step)) {
    return set_byte_bound(plan, input_bound(planning, of));
  }
  const bool known = on_gpu_bound.has_value() && !updates_are_free;
  set_byte_bound(plan, known ? *on_gpu_bound : pcie_bound(planning, of, !updates_are_free));
}

}  // namespace stowage
