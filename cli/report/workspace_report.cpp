#include "cli/report/workspace_report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stowage {

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

}  // namespace stowage
