#include "estimator/adapt/graph_edit.hpp"

#include <fmt/format.h>

#include <utility>

#include "estimator/model/operator_path.hpp"

namespace stowage {

GraphEdit::GraphEdit(ModelGraph model)
    : model_(std::move(model)), old_(std::exchange(model_.operators, {})) {
  model_.operators.reserve(old_.size());
  replacement_.reserve(model_.tensors.size());
  for (std::size_t i = 0; i < model_.tensors.size(); ++i) replacement_.push_back(TensorId::of(i));
}

Operator& GraphEdit::take(std::size_t i) {
  model_.operators.push_back(std::move(old_[i]));
  Operator& op = model_.operators.back();
  for (TensorId& input : op.inputs) input = replacement_[input.index()];
  return op;
}

void GraphEdit::drop(std::size_t i) {
  for (const TensorId output : old_[i].outputs) model_.tensors[output.index()].producer = {};
}

Result<GraphEdit::InsertedOperator> GraphEdit::put(Operator op, const Inference& inference,
                                                   DataType type) {
  for (std::size_t i = 0; i < inference.outputs.size(); ++i) {
    op.outputs.push_back(TensorId::of(model_.tensors.size()));
    TensorType made = inference.outputs[i];
    if (op.row->makes_floats) made.type = type;
    std::string name = inference.outputs.size() == 1 ? op.name : fmt::format("{}.{}", op.name, i);
    model_.tensors.push_back({.name = std::move(name), .type = std::move(made), .producer = {}});
    replacement_.push_back(op.outputs.back());
  }
  InsertedOperator result{
      .output = op.outputs.front(), .outputs = op.outputs, .parameters = op.parameters};
  model_.operators.push_back(std::move(op));
  return result;
}

Result<GraphEdit::InsertedOperator> GraphEdit::add(std::string name, const OperatorRow& row,
                                                   Attributes attributes,
                                                   std::vector<TensorId> inputs, DataType type,
                                                   const Operator& beside) {
  const auto inference = inferred(model_, row, attributes, inputs, name, beside.span);
  if (!inference) return tl::unexpected(inference.error());
  std::string path = path_of_part(beside, name);
  Operator op{.name = std::move(name),
              .path = std::move(path),
              .row = &row,
              .attributes = std::move(attributes),
              .inputs = std::move(inputs),
              .span = beside.span,
              .region = beside.region};
  op.parameters = add_parameters(model_, op.name, *inference, type, true);
  return put(std::move(op), *inference, type);
}

Result<GraphEdit::InsertedOperator> GraphEdit::add_reader(std::string name, const OperatorRow& row,
                                                          Attributes attributes,
                                                          std::vector<TensorId> inputs,
                                                          std::vector<ParameterId> parameters,
                                                          DataType type, const Operator& beside) {
  const auto inference = inferred(model_, row, attributes, inputs, name, beside.span);
  if (!inference) return tl::unexpected(inference.error());
  std::string path = path_of_part(beside, name);
  Operator op{.name = std::move(name),
              .path = std::move(path),
              .row = &row,
              .attributes = std::move(attributes),
              .inputs = std::move(inputs),
              .parameters = std::move(parameters),
              .span = beside.span,
              .region = beside.region};
  return put(std::move(op), *inference, type);
}

void GraphEdit::redirect(TensorId from, TensorId to) { replacement_[from.index()] = to; }

ModelGraph GraphEdit::finished() && {
  if (model_.output.valid()) model_.output = replacement_[model_.output.index()];
  for (std::size_t i = 0; i < model_.operators.size(); ++i) {
    for (const TensorId output : model_.operators[i].outputs) {
      model_.tensors[output.index()].producer = OperatorId::of(i);
    }
  }
  return std::move(model_);
}

std::vector<ParameterId> add_parameters(ModelGraph& model, const std::string& owner,
                                        const Inference& inference, DataType type, bool trainable) {
  std::vector<ParameterId> ids;
  for (const ParameterSpec& spec : inference.parameters) {
    const bool follows = is_floating_point(spec.type) && !spec.is_buffer;
    ids.push_back(ParameterId::of(model.parameters.size()));
    model.parameters.push_back({.name = fmt::format("{}.{}", owner, spec.name),
                                .type = {spec.shape, follows ? type : spec.type},
                                .trainable = trainable && !spec.is_buffer,
                                .is_buffer = spec.is_buffer});
  }
  return ids;
}

Result<Inference> inferred(const ModelGraph& model, const OperatorRow& row,
                           const Attributes& attributes, const std::vector<TensorId>& inputs,
                           const std::string& name, const SourceSpan& span) {
  const auto lower = autocast_type(model.precision);
  const AutocastClass autocast = autocast_class(row, attributes);
  std::vector<TensorType> types;
  for (const TensorId input : inputs) {
    types.push_back(model.tensor(input).type);
    if (lower) types.back().type = autocast_input(autocast, *lower, types.back().type);
  }
  auto inference = row.infer(attributes, types);
  if (inference) return *std::move(inference);
  return failure(Diagnostic{.message = fmt::format("'{}': {}", name, inference.error().message),
                            .span = span,
                            .hint = inference.error().hint});
}

}  // namespace stowage
