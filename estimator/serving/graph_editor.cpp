#include "estimator/serving/graph_editor.hpp"

#include <fmt/format.h>

namespace stowage {

GraphEditor::GraphEditor(const ModelGraph& model) : model_(model) {
  for (Operator& op : model_.operators) {
    if (!op.path.empty()) paths_.emplace(std::move(op.name), std::move(op.path));
  }
  model_.operators.clear();
}

std::string GraphEditor::path_of(std::string_view name) const {
  for (std::size_t end = name.size(); end != name.npos && end > 0; end = name.rfind('.', end - 1)) {
    const auto found = paths_.find(name.substr(0, end));
    if (found != paths_.end()) return found->second + std::string(name.substr(end));
  }
  return {};
}

void GraphEditor::keep(Operator op) {
  if (op.path.empty()) op.path = path_of(op.name);
  model_.operators.push_back(std::move(op));
}

std::vector<TensorId> GraphEditor::add(std::string name, const OperatorRow& row,
                                       Attributes attributes, std::vector<TensorId> inputs,
                                       std::vector<TensorType> outputs, const SourceSpan& span) {
  Operator op{.name = std::move(name),
              .row = &row,
              .attributes = std::move(attributes),
              .inputs = std::move(inputs),
              .span = span};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    op.outputs.push_back(TensorId::of(model_.tensors.size()));
    model_.tensors.push_back(
        {.name = outputs.size() == 1 ? op.name : fmt::format("{}.{}", op.name, i),
         .type = std::move(outputs[i]),
         .producer = {},
         .output_index = static_cast<int>(i)});
  }
  std::vector<TensorId> made = op.outputs;
  keep(std::move(op));
  return made;
}

ModelGraph GraphEditor::finish() && {
  for (ModelTensor& tensor : model_.tensors) tensor.producer = {};
  for (std::size_t i = 0; i < model_.operators.size(); ++i) {
    for (const TensorId output : model_.operators[i].outputs) {
      model_.tensors[output.index()].producer = OperatorId::of(i);
    }
  }
  return std::move(model_);
}

}  // namespace stowage
