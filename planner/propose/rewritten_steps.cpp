#include "planner/propose/rewritten_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "estimator/rewrite/early_updates.hpp"
#include "estimator/rewrite/micro_batches.hpp"
#include "estimator/rewrite/recompute.hpp"
#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/propose/fit_host.hpp"
#include "planner/propose/trials.hpp"
#include "planner/recompute/choose_recomputation.hpp"

namespace stowage {
namespace {

// A step in parts repeats forward and backward: past this many nodes none is tried.
constexpr std::size_t most_nodes_in_parts = 30'000;
constexpr int most_swapping_trials = 4;

constexpr const char* early_remark =
    "early updates give the same numbers; PyTorch's way to them is an optimizer's step in "
    "register_post_accumulate_grad_hook";

std::optional<Plan> plan_in_parts(const Planning& planning, StepCase& part, std::int64_t parts,
                                  std::int64_t whole_batch) {
  (void)assemble_all_gpu(planning, part);
  auto plan = cheapest_plan(planning, part, Effort::quick);
  if (!plan) return std::nullopt;
  const StepGraph& graph = *part.step.graph;
  plan->name = parts_name(graph, parts);
  if (changes_training_in_parts(graph)) {
    plan->remarks.push_back(
        fmt::format("changes the training, so it is not recommended: batch_norm takes its "
                    "statistics from micro-batches of {} instead of {}",
                    part.step.batch, whole_batch));
  }
  return *std::move(plan);
}

}  // namespace

std::optional<Plan> early_updates_plan(const Planning& planning, const StepCase& whole,
                                       Effort effort) {
  auto rewritten = with_early_updates(*whole.step.graph);
  if (!rewritten) return std::nullopt;
  auto early = case_of(planning, *std::move(rewritten));
  if (!early) return std::nullopt;
  auto plan = cheapest_plan(planning, *early, effort);
  if (!plan) return std::nullopt;
  if (effort == Effort::full) set_pcie_bound(planning, *early, *plan);
  plan->name = "early-updates";
  plan->remarks.emplace_back(early_remark);
  return *std::move(plan);
}

std::optional<Plan> recompute_plan(const Planning& planning, const StepCase& whole, Effort effort) {
  const StepGraph& graph = *whole.step.graph;
  if (graph.settings.mode != Mode::train || !graph.settings.recomputed.empty()) return std::nullopt;
  const std::vector<RecomputePoint> points =
      choose_recomputation(whole.step, planning.rates,
                           {.budget = planning.request.budget,
                            .time_limit_seconds = planning.options.time_limit_seconds,
                            .effort = effort == Effort::full ? 1 : 0.2,
                            .stop = planning.options.cancelled});
  const auto start = std::chrono::steady_clock::now();
  const auto is_over = [&] {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    return planning.is_cancelled() || taken.count() > planning.options.time_limit_seconds;
  };
  std::optional<Trial> best;
  // Gradients that live shorter leave more room for what is kept.
  for (const RecomputePoint& point : points) {
    if (is_over()) break;
    auto rewritten = with_recomputation(graph, point.values);
    if (!rewritten) continue;
    auto early = with_early_updates(*rewritten);
    try_step(planning, early ? *std::move(early) : *std::move(rewritten), best);
  }
  if (!best) return std::nullopt;
  Plan plan = searched_on(planning, *std::move(best), effort);
  plan.name = "recompute";
  const LoweringSettings& of_plan = plan.step.graph->settings;
  if (of_plan.early_updates) plan.remarks.emplace_back(early_remark);
  return plan;
}

bool changes_training_in_parts(const StepGraph& step) {
  return step.settings.mode == Mode::train &&
         std::ranges::any_of(step.nodes, [](const KernelNode& node) {
           return node.kernel == Kernel::batch_norm_forward;
         });
}

std::string parts_name(const StepGraph& step, std::int64_t parts) {
  return fmt::format("{}-{}", step.settings.mode == Mode::train ? "micro-batch" : "chunk", parts);
}

std::vector<std::int64_t> part_counts(const Planning& planning, const StepCase& whole) {
  const StepGraph& one = *whole.step.graph;
  std::vector<std::int64_t> counts;
  if (one.settings.micro_batches != 1 || planning.document.fixed_batch) return counts;
  if (one.settings.early_updates || !one.settings.recomputed.empty()) return counts;
  const WholeBatch& batch = planning.request.batch;
  // Each part has a node at least.
  const auto most_parts = std::min<std::int64_t>(batch.samples, most_nodes_in_parts);
  for (std::int64_t parts = 2; parts <= most_parts; ++parts) {
    if (nodes_with_micro_batches(one, parts) > most_nodes_in_parts) break;
    if (micro_batch_of(batch, parts)) counts.push_back(parts);
  }
  return counts;
}

std::optional<Plan> parts_plan(const Planning& planning, const StepCase& whole) {
  const StepGraph& one = *whole.step.graph;
  const WholeBatch& batch = planning.request.batch;
  std::optional<Plan> best;
  std::optional<StepCase> of_best;
  int swapping = 0;
  for (const std::int64_t parts : part_counts(planning, whole)) {
    if (planning.is_cancelled()) break;
    auto rewritten = with_micro_batches(one, parts);
    if (!rewritten) break;
    auto part = make_case(planning, std::make_shared<const StepGraph>(*std::move(rewritten)));
    if (!part) break;
    const Bytes budget = planning.request.budget;
    if (memory_floor(part->placed).bytes > budget) continue;
    const Bytes all_gpu = evaluate(part->on_gpu, all_gpu_placement(part->on_gpu, budget)).peak;
    const bool fits = all_gpu <= budget;
    // Swapping is a last resort: look at a few, and further only for one that needs none.
    if (!fits && swapping++ >= most_swapping_trials) continue;
    auto plan = plan_in_parts(planning, *part, parts, batch.samples);
    const bool packs = plan.has_value();
    if (packs && (!best || is_better(*plan, *best, planning.request.host))) {
      best = *std::move(plan);
      of_best = *std::move(part);
    }
    if (fits && packs) break;  // more parts only launch more kernels
  }
  if (best) set_pcie_bound(planning, *of_best, *best);
  return best;
}

}  // namespace stowage
