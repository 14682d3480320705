// The proposals for a model at fractions of its unconstrained arena, the time to make them, and
// whether the validator passes them.
//
//   plans MODEL BATCH [PERCENT...]      MODEL: a file, or a name from configs/models
#include <fmt/core.h>

#include <chrono>
#include <string>
#include <vector>

#include "bench/shipped_step.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/propose/proposals.hpp"
#include "planner/validate/validate_plan.hpp"

namespace {

using namespace stowage;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Host usual_host() {
  Host host;
  host.name = "bench";
  host.cpu_flops = 2e11;
  host.memory_bandwidth = 2e10;
  return host;
}

void print(const Plan& plan, WorkspaceSource& workspaces) {
  const auto start = Clock::now();
  const PlanValidation validation = validate_plan(plan, workspaces);
  const double validate_ms = milliseconds_since(start);
  const std::string text = write_plan(plan);
  const auto before = Clock::now();
  const auto read = read_plan(std::make_shared<const SourceText>(SourceText{"plan", text}));
  const double read_ms = milliseconds_since(before);
  const PlanTotals& totals = plan.totals;
  fmt::print(
      "    {:<16} arena {:>10} bound {:>10} pcie {:>10} bound {:>10} cost {:.4f} bound {:.4f} "
      "overhead gap {:5.2f}% step {:.4f} all-GPU {:.4f} nodes {} validated {:.0f} ms {} read "
      "{:.0f} ms {}\n",
      plan.name, format_bytes(totals.arena), format_bytes(totals.arena_lower_bound),
      format_bytes(totals.h2d + totals.d2h), format_bytes(totals.pcie_lower_bound),
      totals.cost_seconds, totals.cost_lower_bound_seconds, 100 * totals.overhead_gap(),
      totals.step_seconds, totals.all_gpu_step_seconds, plan.nodes.size(), validate_ms,
      validation.passed() ? "passed" : "FAILED", read_ms,
      read && write_plan(*read) == text ? "same" : "DIFFERENT");
  for (const Check& check : validation.checks) {
    if (!check.passed) fmt::print("        {}: {}\n", check.name, check.detail);
  }
  for (const std::string& remark : plan.remarks) fmt::print("        {}\n", remark);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: {} MODEL BATCH [PERCENT...]\n", argv[0]);
    return 2;
  }
  auto shipped = shipped_step(argv[1], "rtx3060", {});
  if (!shipped) {
    fmt::print(stderr, "{}", render(shipped.error()));
    return 2;
  }
  PlanRequest request{.document = std::move(shipped->document),
                      .description = shipped->description,
                      .batch = WholeBatch(std::stoll(argv[2])),
                      .card = shipped->card,
                      .host = usual_host(),
                      .stowage_version = "bench"};
  auto workspaces = rule_workspace_source(8.6);
  const auto step = size_step(request.document.graph, request.batch.samples, *workspaces);
  if (!step) return 2;
  const auto rates = make_rates(request.card, request.host);
  const auto problem = make_problem(*step, rates, {});
  const auto start = Clock::now();
  const Plan all =
      assemble_plan(*step, problem, all_gpu_placement(problem), {.budget = GpuBudget::unlimited()});
  fmt::print("{} at {}: {} nodes, arena {}, bound {}, assembled in {:.1f} ms\n", argv[1], argv[2],
             step->graph->nodes.size(), format_bytes(all.totals.arena),
             format_bytes(all.totals.arena_lower_bound), milliseconds_since(start));
  std::vector<int> percents{95, 75, 50, 35, 25};
  if (argc > 3) percents.clear();
  for (int i = 3; i < argc; ++i) percents.push_back(std::stoi(argv[i]));
  for (const int percent : percents) {
    request.budget = Bytes(all.totals.arena_lower_bound.count() / 100 * percent);
    const auto begin = Clock::now();
    const auto plans = make_plans(request, *workspaces);
    fmt::print("  {} percent, {}: {:.0f} ms\n", percent, format_bytes(request.budget.bytes),
               milliseconds_since(begin));
    if (!plans) {
      fmt::print("{}", render(plans.error()));
      continue;
    }
    for (const Plan& plan : *plans) print(plan, *workspaces);
  }
  return 0;
}
