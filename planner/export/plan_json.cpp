#include "planner/export/plan_text.hpp"
#include "planner/export/settings_tree.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

SettingsTree names_of(const auto& rows) {
  SettingsTree::List names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

SettingsTree totals_tree(const PlanTotals& totals) {
  SettingsTree tree;
  tree.add("gpu_peak_bytes", totals.gpu_peak);
  tree.add("arena_bytes", totals.arena);
  tree.add("host_peak_bytes", totals.host_peak);
  tree.add("pageable_peak_bytes", totals.pageable_peak);
  tree.add("h2d_bytes", totals.h2d);
  tree.add("d2h_bytes", totals.d2h);
  tree.add("step_seconds", totals.step_seconds);
  tree.add("all_gpu_step_seconds", totals.all_gpu_step_seconds);
  return tree;
}

SettingsTree node_rows(const Plan& plan) {
  SettingsTree::List rows;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlannedNode& node = plan.nodes[i];
    SettingsTree row;
    row.add("node", plan.kernel(NodeId{static_cast<std::int32_t>(i)}).name);
    row.add("processor", plan.machine.processor(node.processor).name);
    if (!node.engine.empty()) row.add("engine", node.engine);
    if (node.workspace > Bytes()) {
      row.add("workspace_bytes", node.workspace);
      row.add("workspace_offset", node.workspace_offset);
    }
    if (!node.window.empty()) {
      row.add("window", SettingsTree::List{node.window.begin, node.window.end});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

SettingsTree residence_rows(const Plan& plan) {
  SettingsTree::List rows;
  for (std::size_t memory = 0; memory < plan.residences.size(); ++memory) {
    for (const Residence& residence : plan.residences[memory]) {
      SettingsTree row;
      row.add("storage", plan.storage(residence.storage).name);
      row.add("memory", plan.machine.memories[memory].name);
      row.add("steps", SettingsTree::List{residence.steps.begin, residence.steps.end});
      row.add("offset", residence.offset);
      row.add("bytes", plan.bytes(residence.storage));
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

SettingsTree transfer_rows(const Plan& plan) {
  SettingsTree::List rows;
  for (const Transfer& transfer : plan.transfers) {
    SettingsTree row;
    row.add("storage", plan.storage(transfer.storage).name);
    row.add("link", plan.machine.link(transfer.link).name);
    row.add("boundaries", SettingsTree::List{transfer.begin, transfer.end});
    row.add("bytes", plan.bytes(transfer.storage));
    rows.push_back(std::move(row));
  }
  return rows;
}

SettingsTree texts(const std::vector<std::string>& lines) {
  SettingsTree::List list;
  for (const std::string& line : lines) list.emplace_back(line);
  return list;
}

}  // namespace

PlanText plan_json(const Plan& plan) {
  const LoweringSettings& settings = plan.step.graph->settings;
  SettingsTree tree;
  tree.add("format", "stowage-plan-decisions");
  tree.add("version", 1);
  tree.add("written_by", plan.inputs.stowage_version);
  tree.add("name", plan.name);
  tree.add("model", plan.inputs.model_name);
  tree.add("batch", whole_batch(plan).samples);
  tree.add("micro_batches", settings.micro_batches);
  tree.add("mode", to_string(settings.mode));
  tree.add("precision", to_string(plan.document.precision));
  if (settings.mode == Mode::train) tree.add("optimizer", settings.optimizer.name);
  tree.add("step", plan.inputs.step_hash);
  tree.add("gpu", plan.inputs.card.name);
  tree.add("available_bytes", plan.inputs.available);
  tree.add("budget_bytes", plan.inputs.budget.is_limited() ? SettingsTree(plan.inputs.budget.bytes)
                                                           : SettingsTree());
  tree.add("totals", totals_tree(plan.totals));
  tree.add("remarks", texts(plan.remarks));
  tree.add("processors", names_of(plan.machine.processors));
  tree.add("memories", names_of(plan.machine.memories));
  tree.add("links", names_of(plan.machine.links));
  SettingsTree::List recomputed;
  for (const RecomputedValue& value : settings.recomputed) recomputed.emplace_back(value.value);
  tree.add("recomputed", std::move(recomputed));
  tree.add("nodes", node_rows(plan));
  tree.add("residences", residence_rows(plan));
  tree.add("transfers", transfer_rows(plan));
  return {.body = json_text(tree),
          .remarks = {"the step's graph, the machine's rates, the certificate and the description: "
                      "the plan's own file has them"}};
}

}  // namespace stowage
