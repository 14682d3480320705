#include "planner/export/dot.hpp"

#include <fmt/format.h>

#include "estimator/model/operator_row.hpp"
#include "planner/export/dot_text.hpp"

namespace stowage {

std::string dot_quoted(std::string_view text) {
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

std::string dot_opening(std::string_view name) {
  return fmt::format(
      "digraph {} {{\n"
      "  rankdir=TB;\n"
      "  node [shape=box, style=filled, fontname=\"Helvetica\", fontsize=10];\n"
      "  edge [fontname=\"Helvetica\", fontsize=8];\n",
      dot_quoted(name));
}

std::string export_dot(const ModelGraph& model) {
  std::string out = dot_opening(model.name);
  for (const TensorId input : model.inputs) {
    const ModelTensor& tensor = model.tensor(input);
    out +=
        fmt::format("  t{} [label={}, shape=ellipse, fillcolor=\"white\"];\n", input.value,
                    dot_quoted(fmt::format("{}\n{}", tensor.name, to_string(tensor.type.shape))));
  }
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[i];
    std::string label = fmt::format("{}\n{}", op.name, op.row->name);
    if (!op.outputs.empty()) {
      label += '\n' + to_string(model.tensor(op.outputs.front()).type.shape);
    }
    out += fmt::format("  o{} [label={}, fillcolor=\"{}\"];\n", i, dot_quoted(label),
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

}  // namespace stowage
