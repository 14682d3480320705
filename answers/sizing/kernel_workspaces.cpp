#include "answers/sizing/kernel_workspaces.hpp"

#include <algorithm>

#include "estimator/workspace/benchmark.hpp"

namespace stowage {

namespace {

// Of the operator: a transposed convolution's forward is cuDNN's data gradient.
std::string_view direction_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::convolution_backward_data:
    case Kernel::transposed_convolution_backward_data:
      return "data gradient";
    case Kernel::convolution_backward_filter:
    case Kernel::transposed_convolution_backward_filter:
      return "filter gradient";
    case Kernel::attention_backward:
      return "backward";
    default:
      return "forward";
  }
}

}  // namespace

std::vector<KernelWorkspace> kernel_workspaces(const SizedStep& step, const CheckReport& report) {
  std::vector<KernelWorkspace> workspaces;
  for (std::size_t i = 0; i < step.graph->nodes.size(); ++i) {
    const KernelNode& node = step.graph->nodes[i];
    if (step.engines[i].empty()) continue;
    KernelWorkspace& workspace = workspaces.emplace_back();
    workspace.node = node.name;
    workspace.layer = step.graph->layer(node.op);
    workspace.direction = direction_of(node.kernel);
    workspace.engine = step.engines[i].front();
    const auto fallback = std::ranges::find(report.fallbacks, node.name, &EngineFallback::node);
    if (fallback != report.fallbacks.end()) workspace.engine = fallback->taken;
    if (step.benchmark.empty() || step.benchmark[i].empty()) continue;
    const BenchmarkOutcome outcome = benchmark_outcome(step.benchmark[i].list());
    workspace.least = outcome.winners.back().workspace;
    workspace.timed_in = outcome.buffer;
  }
  return workspaces;
}

}  // namespace stowage
