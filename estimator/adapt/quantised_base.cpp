#include "estimator/adapt/quantised_base.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/adapt/graph_edit.hpp"
#include "estimator/adapt/named_layers.hpp"
#include "estimator/catalogue/fine_tuning_rows.hpp"
#include "estimator/model/operator_row.hpp"

namespace stowage {

namespace {

const OperatorRow& row_of(BaseFormat format) {
  switch (format) {
    case BaseFormat::int8:
      return linear_8bit_row();
    case BaseFormat::fp8:
      return linear_float8_row();
    case BaseFormat::nf4:
    case BaseFormat::fp4:
      break;
  }
  return linear_4bit_row();
}

Attributes attributes_of(const Operator& op, const BaseSettings& base) {
  Attributes attributes;
  attributes.set("features", op.attributes.integer("features"));
  attributes.set("bias", op.attributes.boolean("bias"));
  if (base.format == BaseFormat::nf4 || base.format == BaseFormat::fp4) {
    attributes.set("double_quant", base.double_quantised);
    attributes.set("format", std::string(to_string(base.format)));
  }
  return attributes;
}

/// By operator: whether its weight is to be quantised.
Result<std::vector<bool>> quantised_layers(const ModelGraph& model, const BaseSettings& base) {
  auto skipped = named_layers(model, base.skipped, is_linear, "is a linear layer");
  if (!skipped) return skipped;
  std::vector<int> users(model.parameters.size());
  for (const Operator& op : model.operators) {
    for (const ParameterId id : op.parameters) ++users[id.index()];
  }
  if (const OperatorId last = output_layer(model); base.skipped.empty() && last.valid()) {
    (*skipped)[last.index()] = true;
  }
  std::vector<bool> quantised(model.operators.size());
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[i];
    quantised[i] = is_linear(op) && !(*skipped)[i] &&
                   std::all_of(op.parameters.begin(), op.parameters.end(),
                               [&](ParameterId id) { return users[id.index()] == 1; });
  }
  if (std::find(quantised.begin(), quantised.end(), true) != quantised.end()) return quantised;
  return failure(fmt::format("'{}' has no linear layer to quantise", model.name));
}

/// Removes the parameters that no operator reads any more.
void drop_parameters(ModelGraph& model, const std::vector<bool>& dropped) {
  std::vector<ParameterId> place(model.parameters.size());
  std::vector<Parameter> kept;
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    if (i < dropped.size() && dropped[i]) continue;
    place[i] = ParameterId::of(kept.size());
    kept.push_back(std::move(model.parameters[i]));
  }
  model.parameters = std::move(kept);
  for (Operator& op : model.operators) {
    for (ParameterId& id : op.parameters) id = place[id.index()];
  }
}

Result<void> quantise(ModelGraph& model, Operator& op, const BaseSettings& base,
                      std::vector<bool>& dropped) {
  const OperatorRow& row = row_of(base.format);
  Attributes attributes = attributes_of(op, base);
  const auto inference = inferred(model, row, attributes, op.inputs, op.name, op.span);
  if (!inference) return tl::unexpected(inference.error());
  const Parameter& weight = model.parameter(op.parameters.front());
  const std::int64_t values = element_count(weight.type.shape).constant;
  for (const ParameterId id : op.parameters) dropped[id.index()] = true;
  op.parameters = add_parameters(model, op.name, *inference, float_type(model.precision), false);
  model.parameters[op.parameters.front().index()].values = values;
  op.row = &row;
  op.attributes = std::move(attributes);
  return {};
}

}  // namespace

Result<ModelGraph> with_quantised_base(ModelGraph model, const BaseSettings& base) {
  if (model.precision != Precision::fp32 && model.precision != Precision::fp16 &&
      model.precision != Precision::bf16) {
    return failure(
        fmt::format("a base in {} computes in the format of its inputs, under fp32, "
                    "fp16 or bf16, not under {}",
                    to_string(base.format), to_string(model.precision)));
  }
  const auto quantised = quantised_layers(model, base);
  if (!quantised) return tl::unexpected(quantised.error());
  std::vector<bool> dropped(model.parameters.size());
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    if (!(*quantised)[i]) continue;
    if (auto made = quantise(model, model.operators[i], base, dropped); !made) {
      return tl::unexpected(std::move(made.error()));
    }
  }
  drop_parameters(model, dropped);
  for (Parameter& parameter : model.parameters) parameter.trainable = false;
  const auto count = std::count(quantised->begin(), quantised->end(), true);
  model.warnings.push_back(
      {.severity = Severity::note,
       .message = fmt::format(
           "{} linear layer{} in {}{}", count, count == 1 ? "" : "s", to_string(base.format),
           base.double_quantised && base.format < BaseFormat::int8 ? ", their maxima in 8 bits"
                                                                   : "")});
  return model;
}

}  // namespace stowage
