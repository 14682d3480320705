#include "cli/report/workspace_report.hpp"

#include <fmt/format.h>

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

Table workspace_table(const std::vector<KernelWorkspace>& workspaces) {
  const bool timed = std::ranges::any_of(
      workspaces, [](const KernelWorkspace& workspace) { return workspace.timed_in.has_value(); });
  Table table{.one_size_scale = true, .columns = {{timed ? "At most" : "Workspace", "bytes"}}};
  if (timed) {
    table.columns.push_back({"At least", "least_bytes"});
    table.columns.push_back({"Timed in", "timed_in_bytes"});
  }
  for (const auto& [title, key] : {std::pair{"Engine", "engine"}, std::pair{"Layer", "layer"},
                                   std::pair{"Direction", "direction"}}) {
    table.columns.push_back({title, key});
  }
  const auto cell = [](const std::optional<Bytes>& bytes) { return bytes ? Cell(*bytes) : Cell(); };
  for (const KernelWorkspace& workspace : workspaces) {
    Row& row = table.rows.emplace_back();
    row.cells.emplace_back(workspace.engine.workspace);
    if (timed) {
      row.cells.push_back(cell(workspace.least));
      row.cells.push_back(cell(workspace.timed_in));
    }
    row.cells.emplace_back(workspace.engine.name);
    row.cells.emplace_back(workspace.layer);
    row.cells.emplace_back(std::string(workspace.direction));
  }
  return table;
}

Json workspaces_json(const std::vector<KernelWorkspace>& workspaces) {
  Json::Array rows;
  for (const KernelWorkspace& workspace : workspaces) {
    Json::Object row{{"kernel", workspace.node},
                     {"layer", workspace.layer},
                     {"direction", workspace.direction},
                     {"engine", workspace.engine.name},
                     {"bytes", workspace.engine.workspace}};
    if (workspace.timed_in) {
      row.emplace_back("least_bytes", *workspace.least);
      row.emplace_back("timed_in_bytes", *workspace.timed_in);
    }
    rows.emplace_back(std::move(row));
  }
  return rows;
}

Diagnostics cudnn_notes(const CudnnWorkspaceSource& source) {
  const std::string why = source.no_cudnn_reason();
  if (why.empty()) return {};
  return {
      {.severity = Severity::warning,
       .message = fmt::format("workspaces are by a rule and not cuDNN's own, which may differ by "
                              "hundreds of MiB: {}",
                              why),
       .hint = "no CUDA is needed: pip install nvidia-cudnn-cu13 in the active Python "
               "environment, or --cudnn DIR"}};
}

}  // namespace stowage
