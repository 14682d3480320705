#include "estimator/rewrite/cast_output.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/model/operator_row.hpp"

namespace stowage {

/// Checks that the result can be cast, makes room for the new operator before the first loss, and
/// lets the losses read its result, whose format their own results take.
Result<ModelGraph> with_cast_output(ModelGraph model, DataType type) {
  const TensorType given = model.tensor(model.output).type;
  if (given.type == type) return model;
  if (!is_floating_point(given.type)) {
    return failure(fmt::format("'{}' returns {}, which FSDP does not cast", model.name,
                               to_string(given.type)));
  }
  if (model.loss_in_model) {
    return failure(
        fmt::format("'{}' computes its loss itself, and FSDP casts its result after that",
                    model.name),
        "leave out the output's format");
  }
  const auto is_loss = [](const Operator& op) { return op.row->is_loss; };
  const auto first_loss = std::ranges::find_if(model.operators, is_loss);
  const auto at = static_cast<std::size_t>(first_loss - model.operators.begin());
  for (ModelTensor& tensor : model.tensors) {
    if (tensor.producer.valid() && tensor.producer.index() >= at) {
      tensor.producer = OperatorId::of(tensor.producer.index() + 1);
    }
  }
  Operator cast{.name = "output_cast", .row = find_operator("cast"), .inputs = {model.output}};
  cast.attributes.set("dtype", std::string(to_string(type)));
  model.tensors.push_back({.name = cast.name,
                           .type = {.shape = given.shape, .type = type},
                           .producer = OperatorId::of(at)});
  const TensorId result = TensorId::of(model.tensors.size() - 1);
  cast.outputs = {result};
  for (Operator& op : model.operators) {
    if (!is_loss(op)) continue;
    std::ranges::replace(op.inputs, model.output, result);
    for (const TensorId output : op.outputs) {
      DataType& of_loss = model.tensors[output.index()].type.type;
      if (is_floating_point(of_loss)) of_loss = type;
    }
  }
  model.operators.insert(model.operators.begin() + static_cast<std::ptrdiff_t>(at),
                         std::move(cast));
  model.output = result;
  return model;
}

}  // namespace stowage
