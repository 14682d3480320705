#include "estimator/serving/graph_editor.hpp"

#include <fmt/format.h>

namespace stowage {

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
  model_.operators.push_back(std::move(op));
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
