#include "planner/propose/rewritten_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "estimator/rewrite/early_updates.hpp"
#include "estimator/rewrite/micro_batches.hpp"
#include "estimator/rewrite/recompute.hpp"
#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/propose/fit_host.hpp"
#include "planner/recompute/choose_recomputation.hpp"

namespace stowage {
namespace {

// A step in parts repeats forward and backward. Above so many nodes no step in parts is tried.
constexpr std::size_t most_nodes_in_parts = 30'000;
constexpr std::size_t most_swapping_trials = 4;

// A step of so few nodes is searched in parts with the same effort as other steps.
constexpr std::size_t few_nodes_in_whole = 300;

constexpr double choosing_share = 0.5;  // of the work that is left

constexpr const char* early_remark =
    "early updates give the same numbers; PyTorch's way to them is an optimizer's step in "
    "register_post_accumulate_grad_hook";

std::vector<std::string> remarks_on_parts(const Planning& planning, const StepGraph& part,
                                          std::int64_t samples) {
  if (!changes_training_in_parts(part)) return {};
  return {
      fmt::format("changes the training, so it is not recommended: batch_norm takes its "
                  "statistics from micro-batches of {} instead of {}",
                  samples, planning.request.batch.samples)};
}

}  // namespace

Trials early_updates_trials(const Planning& planning, const StepCase& whole) {
  Trials trials;
  auto rewritten = with_early_updates(*whole.step.graph);
  if (!rewritten) return trials;
  auto early = case_of(planning, *std::move(rewritten));
  if (!early) return trials;
  auto trial = trial_of(planning, *std::move(early), "early-updates", {early_remark});
  if (trial) trials.push_back(*std::move(trial));
  return trials;
}

Trials recompute_trials(const Planning& planning, const StepCase& whole, Effort effort) {
  const StepGraph& graph = *whole.step.graph;
  if (graph.settings.mode != Mode::train || !graph.settings.recomputed.empty()) return {};
  std::vector<RecomputePoint> points;
  {
    WorkBudget part = planning.work.part(choosing_share);
    points = choose_recomputation(whole.step, planning.rates,
                                  {.budget = planning.request.budget,
                                   .pins = whole.pins,
                                   .effort = effort == Effort::full ? 1 : 0.2,
                                   .work = &part});
  }
  const auto make = [&](const Planning& part, std::size_t i) -> std::optional<Trial> {
    if (part.is_cancelled() || (i > 0 && part.is_over())) {
      part.gaps.add_untried("recompute");
      return std::nullopt;
    }
    auto rewritten = with_recomputation(graph, points[i].values);
    if (!rewritten) return std::nullopt;
    // Early updates shorten the life of gradients, which leaves more memory for saved values.
    auto early = with_early_updates(*rewritten);
    std::vector<std::string> remarks;
    if (early) remarks.emplace_back(early_remark);
    auto of = case_of(part, early ? *std::move(early) : *std::move(rewritten));
    if (!of) return std::nullopt;
    return trial_of(part, *std::move(of), "recompute", std::move(remarks));
  };
  return make_trials(planning, points.size(), make);
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
  // Each part has at least one node.
  const auto most_parts = std::min<std::int64_t>(batch.samples, most_nodes_in_parts);
  for (std::int64_t parts = 2; parts <= most_parts; ++parts) {
    if (nodes_with_micro_batches(one, parts) > most_nodes_in_parts) break;
    if (micro_batch_of(batch, parts)) counts.push_back(parts);
  }
  return counts;
}

std::optional<Plan> parts_plan(const Planning& planning, const StepCase& whole, const Plan* known) {
  const GpuBudget& budget = planning.request.budget;
  Trials swapping;
  std::optional<Plan> best;
  for (const std::int64_t parts : part_counts(planning, whole)) {
    const bool has_some = best || !swapping.empty();
    if (planning.is_cancelled() || (has_some && planning.is_over())) {
      planning.gaps.add_untried(parts_name(*whole.step.graph, parts));
      break;
    }
    auto rewritten = with_micro_batches(*whole.step.graph, parts);
    if (!rewritten) break;
    auto part = case_of(planning, *std::move(rewritten));
    if (!part) break;
    if (!budget.fits(memory_floor(part->placed).bytes)) continue;
    std::string name = parts_name(*part->step.graph, parts);
    auto remarks = remarks_on_parts(planning, *part->step.graph, part->step.batch);
    if (budget.fits(evaluate(part->on_gpu, all_gpu_placement(part->on_gpu, budget)).peak)) {
      best = plan_of(planning, *part, name, {.effort = Effort::quick});
      if (!best) continue;
      best->name = std::move(name);
      std::ranges::move(remarks, std::back_inserter(best->remarks));
      break;  // more parts only launch more kernels
    }
    // Swapping is a last resort: a few numbers of parts that swap are tried, then only one that
    // needs no swapping.
    if (swapping.size() == most_swapping_trials) continue;
    auto trial = trial_of(planning, *std::move(part), std::move(name), std::move(remarks));
    if (trial) swapping.push_back(*std::move(trial));
  }
  if (known != nullptr && host_holds(planning.request.host, known->totals)) {
    std::erase_if(swapping, [&](const Trial& one) { return !may_beat(one, *known); });
  }
  const Effort effort =
      whole.step.graph->nodes.size() < few_nodes_in_whole ? Effort::full : Effort::quick;
  return best_of(planning, std::move(swapping), effort, std::move(best));
}

}  // namespace stowage
