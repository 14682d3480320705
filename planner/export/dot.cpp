#include "planner/export/dot.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/model/operator_row.hpp"
#include "estimator/step/node_dependences.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

// A double-quoted string of the DOT language.
std::string in_quotes(std::string_view text) {
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
      in_quotes(name));
}

std::string_view fill_of(Device device, Phase phase) {
  if (device == Device::cpu) return "#cfe2f3";
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
    return transfer.storage == storage && direction_of(plan, transfer) == Direction::h2d &&
           transfer.begin >= after && transfer.end <= reader;
  });
}

struct PlanWriter {
  const Plan& plan;
  std::vector<std::int32_t> writer;  // by storage: the node that wrote it last, -1: found there
  std::vector<bool> drawn;           // by storage: has a node of its own
  std::vector<std::vector<std::int32_t>> before;  // by node: on which it depends
  std::string out;

  void draw_found(StorageId storage) {
    if (drawn[storage.index()]) return;
    drawn[storage.index()] = true;
    const auto& on_gpu = residences_in(plan, MemoryKind::device);
    const bool resident =
        std::any_of(on_gpu.begin(), on_gpu.end(), [&](const Residence& residence) {
          return residence.storage == storage && residence.steps.begin == 0;
        });
    out +=
        fmt::format("  s{} [label={}, shape=ellipse, fillcolor={}];\n", storage.value,
                    in_quotes(plan.storage(storage).name), resident ? "\"white\"" : "\"#cfe2f3\"");
  }

  void draw_read(StorageId storage, std::int32_t reader) {
    const std::int32_t from = writer[storage.index()];
    if (from < 0) draw_found(storage);
    const std::string tail =
        from < 0 ? fmt::format("s{}", storage.value) : fmt::format("n{}", from);
    std::string style = "color=black";
    if (device_of(plan, plan.nodes[static_cast<std::size_t>(reader)]) == Device::cpu) {
      style = "color=blue";
    } else if (crosses_link(plan, storage, from + 1, reader)) {
      style = fmt::format("color=red, penwidth=2, label={}",
                          in_quotes(format_bytes(plan.bytes(storage))));
    }
    out += fmt::format("  {} -> n{} [{}, tooltip={}];\n", tail, reader, style,
                       in_quotes(plan.storage(storage).name));
  }

  // The control dependencies for a runtime that knows only which node reads which value: in a step
  // with an order of its own each node comes behind the one before it.
  void draw_order(std::int32_t step) {
    if (plan.step.graph->settings.order.empty() || step == 0) return;
    if (std::ranges::binary_search(before[static_cast<std::size_t>(step)], step - 1)) return;
    out += fmt::format(
        "  n{} -> n{} [style=dashed, color=gray, constraint=false, tooltip=\"control\"];\n",
        step - 1, step);
  }

  void draw_node(std::int32_t step) {
    const KernelNode& node = plan.kernel(NodeId{step});
    const Device device = device_of(plan, plan.nodes[static_cast<std::size_t>(step)]);
    const std::string label =
        fmt::format("{}\n{}", node.name, device == Device::cpu ? "cpu" : "gpu");
    out += fmt::format("  n{} [label={}, fillcolor=\"{}\"];\n", step, in_quotes(label),
                       fill_of(device, node.phase));
    for (const TensorView& view : node.reads) draw_read(view.storage, step);
    draw_order(step);
    for (const TensorView& view : node.writes) writer[view.storage.index()] = step;
  }
};

}  // namespace

std::string export_dot(const ModelGraph& model) {
  std::string out = opening(model.name);
  for (const TensorId input : model.inputs) {
    const ModelTensor& tensor = model.tensor(input);
    out += fmt::format("  t{} [label={}, shape=ellipse, fillcolor=\"white\"];\n", input.value,
                       in_quotes(fmt::format("{}\n{}", tensor.name, to_string(tensor.type.shape))));
  }
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[i];
    std::string label = fmt::format("{}\n{}", op.name, op.row->name);
    if (!op.outputs.empty()) {
      label += '\n' + to_string(model.tensor(op.outputs.front()).type.shape);
    }
    out += fmt::format("  o{} [label={}, fillcolor=\"{}\"];\n", i, in_quotes(label),
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
  if (const std::string mismatch = two_sides_mismatch(plan.machine); !mismatch.empty()) {
    return failure("a plan for another machine than one GPU and its host is not drawn: " +
                   mismatch);
  }
  const std::size_t storages = plan.step.graph->storages.size();
  PlanWriter drawing{.plan = plan,
                     .writer = std::vector<std::int32_t>(storages, -1),
                     .drawn = std::vector<bool>(storages),
                     .before = node_dependences(*plan.step.graph),
                     .out = opening(fmt::format("{} {}", plan.inputs.model_name, plan.name))};
  for (std::size_t step = 0; step < plan.nodes.size(); ++step) {
    drawing.draw_node(static_cast<std::int32_t>(step));
  }
  return drawing.out + "}\n";
}

}  // namespace stowage
