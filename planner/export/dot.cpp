#include "planner/export/dot.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/model/operator_row.hpp"
#include "planner/plan/plan_step.hpp"

namespace stowage {

namespace {

// A double-quoted string of the DOT language.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string opening(std::string_view name) {
  return fmt::format(
      "digraph {} {{\n"
      "  rankdir=TB;\n"
      "  node [shape=box, style=filled, fontname=\"Helvetica\", fontsize=10];\n"
      "  edge [fontname=\"Helvetica\", fontsize=8];\n",
      quoted(name));
}

std::string_view fill_of(const PlannedNode& planned, Phase phase) {
  if (planned.device == Device::cpu) return "#cfe2f3";
  switch (phase) {
    case Phase::forward:
      return "#e2f0d9";
    case Phase::loss:
      return "#fff2cc";
    case Phase::backward:
      return "#fce5cd";
    case Phase::update:
      return "#ead1dc";
  }
  return "white";
}

// Is the value of `storage`, written before step `after`, brought by an upload that ends by
// `reader`?
bool crosses_link(const Plan& plan, StorageId storage, std::int32_t after, std::int32_t reader) {
  return std::any_of(plan.transfers.begin(), plan.transfers.end(), [&](const Transfer& transfer) {
    return transfer.storage == storage && transfer.direction == Direction::h2d &&
           transfer.begin >= after && transfer.end <= reader;
  });
}

struct PlanWriter {
  const Plan& plan;
  const StepGraph& graph;
  std::vector<std::int32_t> writer;  // by storage: the node that wrote it last, -1: found there
  std::vector<bool> drawn;           // by storage: has a node of its own
  std::string out;

  void draw_found(StorageId storage) {
    if (drawn[storage.index()]) return;
    drawn[storage.index()] = true;
    const bool resident =
        std::any_of(plan.gpu.begin(), plan.gpu.end(), [&](const Residence& residence) {
          return residence.storage == storage && residence.steps.begin == 0;
        });
    out += fmt::format("  s{} [label={}, shape=ellipse, fillcolor={}];\n", storage.value,
                       quoted(plan.storages[storage.index()].name),
                       resident ? "\"white\"" : "\"#cfe2f3\"");
  }

  void draw_read(StorageId storage, std::int32_t reader) {
    const std::int32_t from = writer[storage.index()];
    if (from < 0) draw_found(storage);
    const PlannedStorage& planned = plan.storages[storage.index()];
    const std::string tail =
        from < 0 ? fmt::format("s{}", storage.value) : fmt::format("n{}", from);
    std::string style = "color=black";
    if (plan.nodes[static_cast<std::size_t>(reader)].device == Device::cpu) {
      style = "color=blue";
    } else if (crosses_link(plan, storage, from + 1, reader)) {
      style = fmt::format("color=red, penwidth=2, label={}", quoted(format_bytes(planned.bytes)));
    }
    out +=
        fmt::format("  {} -> n{} [{}, tooltip={}];\n", tail, reader, style, quoted(planned.name));
  }

  void draw_node(std::int32_t step) {
    const KernelNode& node = graph.nodes[static_cast<std::size_t>(step)];
    const PlannedNode& planned = plan.nodes[static_cast<std::size_t>(step)];
    const std::string label =
        fmt::format("{}\n{}", node.name, planned.device == Device::cpu ? "cpu" : "gpu");
    out += fmt::format("  n{} [label={}, fillcolor=\"{}\"];\n", step, quoted(label),
                       fill_of(planned, node.phase));
    for (const TensorView& view : node.reads) draw_read(view.storage, step);
    for (const TensorView& view : node.writes) writer[view.storage.index()] = step;
  }
};

}  // namespace

std::string export_dot(const ModelGraph& model) {
  std::string out = opening(model.name);
  for (const TensorId input : model.inputs) {
    const ModelTensor& tensor = model.tensor(input);
    out += fmt::format("  t{} [label={}, shape=ellipse, fillcolor=\"white\"];\n", input.value,
                       quoted(fmt::format("{}\n{}", tensor.name, to_string(tensor.type.shape))));
  }
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[i];
    std::string label = fmt::format("{}\n{}", op.name, op.row->name);
    if (!op.outputs.empty()) {
      label += '\n' + to_string(model.tensor(op.outputs.front()).type.shape);
    }
    out += fmt::format("  o{} [label={}, fillcolor=\"{}\"];\n", i, quoted(label),
                       op.parameters.empty() ? "white" : "#e2f0d9");
    for (const TensorId input : op.inputs) {
      const OperatorId producer = model.tensor(input).producer;
      const std::string tail =
          producer.valid() ? fmt::format("o{}", producer.value) : fmt::format("t{}", input.value);
      out += fmt::format("  {} -> o{};\n", tail, i);
    }
  }
  return out + "}\n";
}

Result<std::string> export_dot(const Plan& plan) {
  const auto graph = plan_step(plan);
  if (!graph) return tl::unexpected(graph.error());
  PlanWriter drawing{.plan = plan,
                     .graph = *graph,
                     .writer = std::vector<std::int32_t>(plan.storages.size(), -1),
                     .drawn = std::vector<bool>(plan.storages.size()),
                     .out = opening(fmt::format("{} {}", plan.inputs.model_name, plan.name))};
  for (std::size_t step = 0; step < plan.nodes.size(); ++step) {
    drawing.draw_node(static_cast<std::int32_t>(step));
  }
  return drawing.out + "}\n";
}

}  // namespace stowage
