#include "planner/propose/order_trials.hpp"

#include <fmt/format.h>

#include <utility>

#include "estimator/order/lower_peak.hpp"
#include "estimator/rewrite/node_order.hpp"

namespace stowage {
namespace {

constexpr double ordering_share = 0.5;  // of the work that is left
// A round orders up to three windows of 48 nodes by up to 400 sets at a level.
constexpr std::int64_t work_of_a_round = 5'000;

}  // namespace

bool may_be_reordered(const StepCase& whole) {
  const StepGraph& graph = *whole.step.graph;
  return graph.kernel_set().executable && graph.settings.order.empty();
}

Trials order_trials(const Planning& planning, const StepCase& whole) {
  Trials trials;
  const StepGraph& graph = *whole.step.graph;
  if (!may_be_reordered(whole)) return trials;
  std::vector<std::int32_t> order;
  {
    WorkBudget part = planning.work.part(ordering_share);
    const auto is_over = [&] {
      if (part.is_over()) return true;
      part.spend(work_of_a_round + static_cast<std::int64_t>(graph.nodes.size()) / 4);
      return false;
    };
    order = lower_peak_order(order_problem(whole.step), {.stop = is_over});
  }
  std::vector<NodeRun> runs = runs_of_order(graph, order);
  if (runs.size() < 2 || planning.is_cancelled()) return trials;
  auto rewritten = with_order(graph, std::move(runs));
  if (!rewritten) return trials;
  auto reordered = make_case(planning, std::make_shared<const StepGraph>(*std::move(rewritten)));
  if (!reordered) return trials;
  const Bytes before = whole.all_gpu.least_arena;
  const Bytes after = reordered->all_gpu.least_arena;
  if (after >= before) return trials;
  std::string remark = fmt::format(
      "with everything on the GPU this order takes at least {}, the one in which the step was "
      "lowered {}; a runtime that runs branches as it likes keeps to it by control "
      "dependencies, which stowage export draws",
      format_bytes(after), format_bytes(before));
  auto trial = trial_of(planning, *std::move(reordered), "order", {std::move(remark)});
  if (trial) trials.push_back(*std::move(trial));
  return trials;
}

}  // namespace stowage
