#include "planner/propose/order_plan.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "estimator/order/lower_peak.hpp"
#include "estimator/rewrite/node_order.hpp"
#include "planner/propose/trials.hpp"

namespace stowage {

std::optional<Plan> order_plan(const Planning& planning, const StepCase& whole, Effort effort) {
  const StepGraph& graph = *whole.step.graph;
  if (!graph.kernel_set().executable || !graph.settings.order.empty()) return std::nullopt;
  const auto start = std::chrono::steady_clock::now();
  const auto is_over = [&] {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    return planning.is_cancelled() || taken.count() > planning.options.time_limit_seconds;
  };
  const std::vector<std::int32_t> order =
      lower_peak_order(order_problem(whole.step), {.stop = is_over});
  std::vector<NodeRun> runs = runs_of_order(graph, order);
  if (runs.size() < 2 || planning.is_cancelled()) return std::nullopt;
  auto rewritten = with_order(graph, std::move(runs));
  if (!rewritten) return std::nullopt;
  auto reordered = make_case(planning, std::make_shared<const StepGraph>(*std::move(rewritten)));
  if (!reordered) return std::nullopt;
  StepCase given = whole;
  const Bytes before = assemble_all_gpu(planning, given).totals.arena;
  const Bytes after = assemble_all_gpu(planning, *reordered).totals.arena;
  if (after >= before) return std::nullopt;
  auto plan = cheapest_plan(planning, *reordered, effort);
  if (!plan) return std::nullopt;
  if (effort == Effort::full) set_pcie_bound(planning, *reordered, *plan);
  plan->name = "order";
  plan->remarks.push_back(
      fmt::format("with everything on the GPU this order takes {}, the one in which the step was "
                  "lowered {}; a runtime that runs branches as it likes keeps to it by control "
                  "dependencies, which stowage export draws",
                  format_bytes(after), format_bytes(before)));
  return *std::move(plan);
}

}  // namespace stowage
