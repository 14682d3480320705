#include "planner/assemble/proposals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "estimator/base/hash.hpp"
#include "estimator/document/step_hash.hpp"
#include "estimator/rewrite/micro_batches.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/assemble/plan_within.hpp"

namespace stowage {
namespace {

// A micro-batch's step repeats forward and backward: past this many nodes none is tried.
constexpr std::size_t most_nodes = 30'000;
constexpr int most_swapping_trials = 4;
// Past this many nodes an assembly takes a second, and placements are not assembled for room alone.
constexpr std::size_t most_nodes_with_room = 3'000;

/// One second a billion bytes and nothing else: with these rates the objective is bytes over PCIe.
constexpr double bytes_a_second = 1e9;
Rates byte_rates() {
  Rates rates;
  rates.gpu_launch = rates.cpu_launch = rates.link_latency = 0;
  rates.h2d_bandwidth = rates.d2h_bandwidth = bytes_a_second;
  return rates;
}

Bytes bytes_of_bound(double seconds) {
  // Any plan moves whole bytes, so the bound may be rounded up, but for the division's error.
  return Bytes(
      static_cast<std::int64_t>(std::ceil(std::max(0.0, seconds * bytes_a_second - 0.01))));
}

Bytes pcie(const Plan& plan) { return plan.totals.h2d + plan.totals.d2h; }

/// The inputs of all micro-batches, which every plan that computes on the GPU uploads.
Bytes input_bytes(const SizedStep& step) {
  Bytes bytes;
  for (const TensorView& input : step.graph->inputs) bytes += step.bytes(input.storage);
  return bytes;
}

bool computes_on_cpu(const Plan& plan) {
  return std::any_of(plan.nodes.begin(), plan.nodes.end(),
                     [](const PlannedNode& node) { return node.processor == cpu_processor; });
}

/// What a plan keeps of the step's document.
StepDocument kept_document(StepDocument document) {
  document.evaluation = nullptr;
  if (!document.fixed_batch) document.batch.reset();
  for (Layer& layer : document.layers) layer.flops = layer.saved_bytes = 0;
  document.has_costs = false;
  document.result_bytes.reset();
  document.warnings.clear();
  return document;
}

/// The step at one number of micro-batches and what the proposals for it share.
struct Case {
  SizedStep step;
  ResidencyProblem free_updates;  ///< forward and backward pinned to the GPU
  ResidencyProblem all_gpu;       ///< everything pinned to it
  double all_gpu_step_seconds = 0;
};

class Proposals {
 public:
  Proposals(const PlanRequest& request, WorkspaceSource& workspaces, const ProposalOptions& options)
      : request_(request),
        workspaces_(workspaces),
        options_(options),
        document_(kept_document(request.document)),
        rates_(make_rates(request.card, request.host)) {
    solve_options_.budget = request.budget;
    solve_options_.time_limit_seconds = options.time_limit_seconds;
    solve_options_.target_gap = options.target_gap;
    solve_options_.cancelled = options.cancelled;
  }

  Result<std::vector<Plan>> run() {
    auto whole = make_case(document_.graph);
    if (!whole) return tl::unexpected(whole.error());
    const Plan all_gpu = assemble_all_gpu(*whole);
    if (options_.has_plan && memory_floor(whole->free_updates).bytes <= request_.budget) {
      options_.has_plan();
    }
    auto cheapest_plan = cheapest(*whole);
    if (cheapest_plan && is_cancelled()) {
      cheapest_plan->totals.pcie_lower_bound = trivial_pcie_bound(*whole, *cheapest_plan);
      return std::vector{*std::move(cheapest_plan)};
    }
    if (cheapest_plan) {
      if (all_gpu.totals.arena <= request_.budget) {
        plans_.push_back(finish(*whole, "all-gpu", all_gpu, *cheapest_plan));
      }
      std::optional<Bytes> all_gpu_bound;
      auto fewest_bytes = min_pcie(*whole, *cheapest_plan, all_gpu_bound);
      set_pcie_bound(*whole, *cheapest_plan, all_gpu_bound);
      if (fewest_bytes) fewest_bytes = fewer_bytes(std::move(*fewest_bytes), *cheapest_plan);
      Plan fastest = fewest_bytes ? faster(*cheapest_plan, *fewest_bytes) : *cheapest_plan;
      if (!plans_.empty()) fastest = faster(fastest, plans_.front());  // all-gpu
      plans_.push_back(std::move(fastest));
      // Without it the updates alone break the budget: they have to run on the CPU.
      if (fewest_bytes) plans_.push_back(std::move(*fewest_bytes));
    }
    if (!cheapest_plan || all_gpu.totals.arena > request_.budget) add_micro_batch(*whole);
    if (plans_.empty()) return tl::unexpected(cheapest_plan.error());
    if (!cheapest_plan) {
      plans_.back().remarks.push_back("without micro-batches there is no plan: " +
                                      cheapest_plan.error().front().message);
    }
    return std::move(plans_);
  }

 private:
  [[nodiscard]] bool is_cancelled() const { return options_.cancelled && options_.cancelled(); }

  /// What needs no search to be known: whoever computes on the GPU alone uploads the inputs.
  [[nodiscard]] static Bytes trivial_pcie_bound(const Case& of, const Plan& plan) {
    return computes_on_cpu(plan) ? Bytes() : std::min(pcie(plan), input_bytes(of.step));
  }

  Result<Case> make_case(std::shared_ptr<const StepGraph> graph) {
    const int parts = graph->settings.micro_batches;
    const std::optional<std::int64_t> micro_batch = micro_batch_of(request_.batch, parts);
    if (!micro_batch) {
      return failure(fmt::format("{} micro-batches cannot share a batch of {} equally", parts,
                                 request_.batch.samples));
    }
    auto step = size_step(std::move(graph), *micro_batch, workspaces_);
    if (!step) return tl::unexpected(step.error());
    Case result;
    result.step = std::move(*step);
    result.free_updates = make_problem(result.step, rates_, {.compute_on_gpu = true});
    result.all_gpu =
        make_problem(result.step, rates_, {.compute_on_gpu = true, .all_on_gpu = true});
    return result;
  }

  /// As if the GPU had room for everything.
  Plan assemble_all_gpu(Case& of) const {
    Plan plan = assemble_plan(of.step, of.all_gpu, all_gpu_placement(of.all_gpu, request_.budget),
                              {.budget = unlimited_arena});
    of.all_gpu_step_seconds = plan.totals.step_seconds;
    return plan;
  }

  Result<Plan> cheapest(const Case& of) const {
    auto fitted = plan_within(of.step, of.free_updates, of.free_updates, solve_options_);
    if (!fitted) return tl::unexpected(fitted.error());
    leave_room_for_copies(of, *fitted);
    Plan plan = std::move(fitted->plan);
    fill(of, plan);
    plan.name = "cheapest";
    plan.pinned = Pinned::computation;
    PlanTotals& totals = plan.totals;
    totals.cost_seconds = evaluate(of.free_updates, fitted->placement).cost_seconds;
    totals.cost_lower_bound_seconds =
        std::min(totals.cost_seconds, fitted->solution.cost_lower_bound_seconds);
    totals.all_gpu_cost_seconds = fitted->solution.all_gpu_cost_seconds;
    totals.proved_optimal = fitted->at_budget && fitted->solution.proved_optimal;
    return plan;
  }

  /// What fills the budget leaves no room for copies that arrive early: where the step waits for
  /// copies, placements of a smaller live sum are assembled in all of the budget, and the fastest
  /// simulated step is taken.
  void leave_room_for_copies(const Case& of, FittedPlan& fitted) const {
    if (of.step.graph->nodes.size() > most_nodes_with_room) return;
    for (const std::int64_t part : {62, 58}) {  // of 64
      const bool waits = fitted.plan.totals.step_seconds > 1.02 * of.all_gpu_step_seconds;
      if (!waits || is_cancelled()) return;
      SolveOptions less = solve_options_;
      const Bytes limit(request_.budget.count() / 64 * part);
      less.limits.assign(of.free_updates.operations.size(), limit);
      less.branches = false;
      const auto solution = solve(of.free_updates, less);
      if (!solution) return;
      Plan plan =
          assemble_plan(of.step, of.free_updates, solution->placement, {.budget = request_.budget});
      const bool packs = plan.totals.arena <= request_.budget;
      const double worth_it = 0.99 * fitted.plan.totals.step_seconds;
      if (!packs || plan.totals.step_seconds > worth_it) continue;
      fitted.plan = std::move(plan);
      fitted.placement = solution->placement;
      fitted.at_budget = false;
    }
  }

  /// `all_gpu_bound`, if known, is of plans that compute on the GPU alone.
  void set_pcie_bound(const Case& of, Plan& plan, std::optional<Bytes> all_gpu_bound) const {
    const bool updates_are_free = computes_on_cpu(plan);
    if (!updates_are_free && pcie(plan) == input_bytes(of.step)) {
      plan.totals.pcie_lower_bound = pcie(plan);  // any plan uploads the inputs
      return;
    }
    const bool known = all_gpu_bound.has_value() && !updates_are_free;
    plan.totals.pcie_lower_bound =
        std::min(pcie(plan), known ? *all_gpu_bound : pcie_bound(of, updates_are_free));
  }

  /// No plan within the budget that computes on the GPU (updates too, or where they like) moves
  /// fewer bytes.
  [[nodiscard]] Bytes pcie_bound(const Case& of, bool updates_are_free) const {
    const ResidencyProblem problem = byte_problem(of, updates_are_free);
    const auto solution = solve(problem, solve_options_);
    return solution ? bytes_of_bound(solution->cost_lower_bound_seconds) : Bytes();
  }

  [[nodiscard]] ResidencyProblem byte_problem(const Case& of, bool updates_are_free) const {
    return make_problem(of.step, byte_rates(),
                        {.compute_on_gpu = true, .all_on_gpu = !updates_are_free});
  }

  /// Also says below which bytes no plan that computes on the GPU alone can go.
  [[nodiscard]] Result<Plan> min_pcie(const Case& of, const Plan& cheapest_plan,
                                      std::optional<Bytes>& all_gpu_bound) const {
    auto fitted = plan_within(of.step, byte_problem(of, false), of.all_gpu, solve_options_);
    if (!fitted) return tl::unexpected(fitted.error());
    Plan plan = std::move(fitted->plan);
    plan.totals.cost_seconds = evaluate(of.all_gpu, fitted->placement).cost_seconds;
    plan = finish(of, "min-pcie", std::move(plan), cheapest_plan);
    all_gpu_bound = bytes_of_bound(fitted->solution.cost_lower_bound_seconds);
    plan.totals.pcie_lower_bound = std::min(pcie(plan), *all_gpu_bound);
    plan.totals.proved_optimal = plan.totals.pcie_lower_bound == pcie(plan);
    return plan;
  }

  /// The plan of least cost, or `other` where the simulation, which ranks, shows that to be faster.
  [[nodiscard]] static Plan faster(const Plan& cheapest_plan, const Plan& other) {
    if (other.totals.step_seconds >= cheapest_plan.totals.step_seconds) return cheapest_plan;
    Plan plan = other;
    plan.name = cheapest_plan.name;
    plan.pinned = cheapest_plan.pinned;
    plan.totals.proved_optimal = false;
    return plan;
  }

  /// The plan of fewest bytes, or the cheapest one where that computes on the GPU alone and has
  /// turned out to move fewer. The bound on bytes is that of the solve which minimised them.
  [[nodiscard]] static Plan fewer_bytes(Plan fewest_bytes, const Plan& cheapest_plan) {
    if (computes_on_cpu(cheapest_plan) || pcie(cheapest_plan) >= pcie(fewest_bytes)) {
      return fewest_bytes;
    }
    Plan plan = cheapest_plan;
    plan.name = fewest_bytes.name;
    plan.pinned = fewest_bytes.pinned;
    plan.totals.pcie_lower_bound = fewest_bytes.totals.pcie_lower_bound;
    return plan;
  }

  /// Bounds that the cheapest plan's solve proved for every plan of this step.
  [[nodiscard]] Plan finish(const Case& of, const std::string& name, Plan plan,
                            const Plan& cheapest_plan) const {
    fill(of, plan);
    plan.name = name;
    plan.pinned = Pinned::all_nodes;
    PlanTotals& totals = plan.totals;
    if (totals.cost_seconds == 0) {
      totals.cost_seconds =
          evaluate(of.all_gpu, all_gpu_placement(of.all_gpu, request_.budget)).cost_seconds;
      totals.pcie_lower_bound = pcie(plan);  // the inputs, which any plan uploads
      totals.proved_optimal = true;
    }
    totals.cost_lower_bound_seconds =
        std::min(totals.cost_seconds, cheapest_plan.totals.cost_lower_bound_seconds);
    totals.all_gpu_cost_seconds = cheapest_plan.totals.all_gpu_cost_seconds;
    return plan;
  }

  void fill(const Case& of, Plan& plan) const {
    PlanInputs& in = plan.inputs;
    in.stowage_version = request_.stowage_version;
    in.model_name = document_.graph->model;
    if (request_.description) {
      in.model_text = request_.description->text;
      in.model_hash = hash_text(in.model_text);
    }
    in.step_hash = step_hash(of.step);
    in.model_options = request_.model_options;
    in.card = request_.card;
    in.host = request_.host;
    in.available = request_.available;
    in.budget = request_.budget;
    plan.machine = gpu_and_host(rates_);
    plan.document = document_;
    plan.document.graph = of.step.graph;
    plan.totals.all_gpu_step_seconds = of.all_gpu_step_seconds;
    const Bytes pinned = request_.host.pinned_limit;
    if (pinned > Bytes() && plan.totals.host_peak > pinned) {
      plan.remarks.push_back(fmt::format("needs {} of pinned host memory; '{}' allows {}",
                                         format_bytes(plan.totals.host_peak), request_.host.name,
                                         format_bytes(pinned)));
    }
  }

  void add_micro_batch(const Case& whole) {
    const StepGraph& one = *whole.step.graph;
    if (one.settings.mode != Mode::train || one.settings.micro_batches != 1) return;
    if (document_.fixed_batch) return;
    std::optional<Plan> best;
    int swapping = 0;
    // Each micro-batch has a node at least.
    const auto most_parts = std::min<std::int64_t>(request_.batch.samples, most_nodes);
    for (std::int64_t parts = 2; parts <= most_parts; ++parts) {
      if (is_cancelled() || nodes_with_micro_batches(one, parts) > most_nodes) break;
      if (!micro_batch_of(request_.batch, parts)) continue;
      auto rewritten = with_micro_batches(one, parts);
      if (!rewritten) break;
      auto part = make_case(std::make_shared<const StepGraph>(*std::move(rewritten)));
      if (!part) break;
      const Bytes all_gpu =
          evaluate(part->all_gpu, all_gpu_placement(part->all_gpu, request_.budget)).peak;
      if (memory_floor(part->free_updates).bytes > request_.budget) continue;
      const bool fits = all_gpu <= request_.budget;
      // Swapping is a last resort: look at a few, and further only for one that needs none.
      if (!fits && swapping++ >= most_swapping_trials) continue;
      auto plan = micro_batch(*part, parts);
      const bool packs = plan.has_value();
      if (packs && (!best || plan->totals.step_seconds < best->totals.step_seconds)) {
        best = *std::move(plan);
      }
      if (fits && packs) break;  // more parts only launch more kernels
    }
    if (best) plans_.push_back(std::move(*best));
  }

  Result<Plan> micro_batch(Case& part, std::int64_t parts) const {
    (void)assemble_all_gpu(part);
    auto plan = cheapest(part);
    if (!plan) return plan;
    set_pcie_bound(part, *plan, std::nullopt);
    plan->name = fmt::format("micro-batch-{}", parts);
    const auto& nodes = part.step.graph->nodes;
    if (std::any_of(nodes.begin(), nodes.end(), [](const KernelNode& node) {
          return node.kernel == Kernel::batch_norm_forward;
        })) {
      plan->remarks.push_back(
          fmt::format("changes the training, so it is not recommended: batch_norm takes its "
                      "statistics from micro-batches of {} instead of {}",
                      part.step.batch, request_.batch.samples));
    }
    return plan;
  }

  const PlanRequest& request_;
  WorkspaceSource& workspaces_;
  const ProposalOptions& options_;
  StepDocument document_;
  Rates rates_;
  SolveOptions solve_options_;
  std::vector<Plan> plans_;
};

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
  return Proposals(request, workspaces, options).run();
}

}  // namespace stowage
