// batch_norm (over the channel axis 1) and layer_norm (over trailing axes). Saved for backward as
// in PyTorch's native_batch_norm and native_layer_norm: the input and two statistics.
#include <fmt/format.h>

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr std::int64_t batch_norm_flops = 8;  // a element: two statistics, normalise, scale, shift
constexpr std::int64_t layer_norm_flops = 8;

tl::expected<Inference, InferenceError> infer_batch_norm(const Attributes& attributes,
                                                         std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (x.shape.size() < 2) {
    return refuse(
        fmt::format("wants [batch, channels, ...], but its input has shape {}", to_string(x.shape)),
        {}, 0);
  }
  if (auto error = want_floating(x)) return tl::unexpected(*error);
  if (auto error = want_constant(x.shape[1], "channels")) return tl::unexpected(*error);
  const Shape channels{x.shape[1]};
  Inference result;
  result.outputs = {x};
  if (attributes.boolean("affine")) {
    result.parameters.push_back({.name = "weight", .shape = channels, .type = x.type});
    result.parameters.push_back({.name = "bias", .shape = channels, .type = x.type});
  }
  result.parameters.push_back(
      {.name = "running_mean", .shape = channels, .type = x.type, .is_buffer = true});
  result.parameters.push_back(
      {.name = "running_var", .shape = channels, .type = x.type, .is_buffer = true});
  result.parameters.push_back(
      {.name = "num_batches_tracked", .shape = {}, .type = DataType::int64, .is_buffer = true});
  result.flops = element_count(x.shape) * Affine(batch_norm_flops);
  return result;
}

struct BatchNormParameters {
  std::vector<TensorView> affine;  // weight, bias
  TensorView mean, variance;
};

BatchNormParameters batch_norm_parameters(const OperatorLowering& lowering) {
  BatchNormParameters parameters;
  int at = 0;
  if (lowering.attributes().boolean("affine")) {
    parameters.affine = {lowering.parameter(0), lowering.parameter(1)};
    at = 2;
  }
  parameters.mean = lowering.parameter(at);
  parameters.variance = lowering.parameter(at + 1);
  return parameters;
}

void forward_batch_norm(OperatorLowering& lowering) {
  const TensorView x = lowering.contiguous(lowering.input(), "input.contiguous");
  const BatchNormParameters parameters = batch_norm_parameters(lowering);
  std::vector<TensorView> reads{x};
  reads.insert(reads.end(), parameters.affine.begin(), parameters.affine.end());
  reads.push_back(parameters.mean);
  reads.push_back(parameters.variance);
  const Affine flops = element_count(x.shape) * Affine(batch_norm_flops);
  const TensorView y = lowering.new_output();
  if (!lowering.training()) {
    lowering.emit(Kernel::batch_norm_inference, "forward", reads, {y}, {.flops = flops});
    return;
  }
  const Shape channels{x.shape[1]};
  const TensorView mean =
      lowering.new_tensor("save_mean", channels, DataType::float32, StorageClass::saved_auxiliary);
  const TensorView invstd = lowering.new_tensor("save_invstd", channels, DataType::float32,
                                                StorageClass::saved_auxiliary);
  lowering.emit(Kernel::batch_norm_forward, "forward", reads,
                {y, mean, invstd, parameters.mean, parameters.variance}, {.flops = flops});
  lowering.save("input", x);
  if (!parameters.affine.empty()) lowering.save("weight", parameters.affine[0]);
  if (lowering.pytorch()) {
    lowering.save("running_mean", parameters.mean);
    lowering.save("running_var", parameters.variance);
  }
  lowering.save("save_mean", mean);
  lowering.save("save_invstd", invstd);
}

void backward_batch_norm(OperatorLowering& lowering) {
  const TensorView x = lowering.saved("input");
  const BatchNormParameters parameters = batch_norm_parameters(lowering);
  const TensorView dy = lowering.contiguous(lowering.output_gradient(), "grad.contiguous");
  const TensorView dx = lowering.new_input_gradient();
  std::vector<TensorView> reads{x, dy};
  std::vector<TensorView> writes{dx};
  if (!parameters.affine.empty()) {
    reads.push_back(parameters.affine[0]);
    writes.push_back(lowering.new_parameter_gradient(0));
    writes.push_back(lowering.new_parameter_gradient(1));
  }
  reads.push_back(lowering.saved("save_mean"));
  reads.push_back(lowering.saved("save_invstd"));
  lowering.emit(Kernel::batch_norm_backward, "backward", reads, writes,
                {.flops = element_count(x.shape) * Affine(2 * batch_norm_flops)});
  if (lowering.input_needs_gradient()) lowering.give_input_gradient(0, dx);
  if (writes.size() == 3 && lowering.parameter_needs_gradient(0)) {
    lowering.give_parameter_gradient(0, writes[1]);
    lowering.give_parameter_gradient(1, writes[2]);
  }
}

tl::expected<Inference, InferenceError> infer_layer_norm(const Attributes& attributes,
                                                         std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const auto axes = static_cast<std::size_t>(attributes.integer("axes"));
  if (x.shape.size() < axes) {
    return refuse(fmt::format("normalizes the last {} axes, but its input has shape {}", axes,
                              to_string(x.shape)),
                  "axes", 0);
  }
  if (auto error = want_floating(x)) return tl::unexpected(*error);
  const Shape normalized(x.shape.end() - static_cast<std::ptrdiff_t>(axes), x.shape.end());
  for (const Affine& dimension : normalized) {
    if (auto error = want_constant(dimension, "normalized axes")) return tl::unexpected(*error);
  }
  Inference result;
  result.outputs = {x};
  if (attributes.boolean("affine")) {
    result.parameters.push_back({.name = "weight", .shape = normalized, .type = x.type});
    result.parameters.push_back({.name = "bias", .shape = normalized, .type = x.type});
  }
  result.flops = element_count(x.shape) * Affine(layer_norm_flops);
  return result;
}

void forward_layer_norm(OperatorLowering& lowering) {
  const TensorView x = lowering.contiguous(lowering.input(), "input.contiguous");
  std::vector<TensorView> reads{x};
  for (int i = 0; i < lowering.parameter_count(); ++i) reads.push_back(lowering.parameter(i));
  const TensorView y = lowering.new_output();
  Shape rows = x.shape;
  rows.resize(rows.size() - static_cast<std::size_t>(lowering.attributes().integer("axes")));
  const TensorView mean =
      lowering.new_tensor("mean", rows, DataType::float32, StorageClass::saved_auxiliary);
  const TensorView rstd =
      lowering.new_tensor("rstd", rows, DataType::float32, StorageClass::saved_auxiliary);
  lowering.emit(Kernel::layer_norm_forward, "forward", reads, {y, mean, rstd},
                {.flops = element_count(x.shape) * Affine(layer_norm_flops)});
  lowering.save("input", x);
  for (int i = 0; i < lowering.parameter_count(); ++i) {
    lowering.save(i == 0 ? "weight" : "bias", lowering.parameter(i));
  }
  lowering.save("mean", mean);
  lowering.save("rstd", rstd);
}

void backward_layer_norm(OperatorLowering& lowering) {
  const TensorView x = lowering.saved("input");
  const TensorView dy = lowering.contiguous(lowering.output_gradient(), "grad.contiguous");
  const TensorView dx = lowering.new_input_gradient();
  std::vector<TensorView> reads{x, dy};
  std::vector<TensorView> writes{dx};
  if (lowering.parameter_count() > 0) {
    reads.push_back(lowering.parameter(0));
    writes.push_back(lowering.new_parameter_gradient(0));
    writes.push_back(lowering.new_parameter_gradient(1));
  }
  reads.push_back(lowering.saved("mean"));
  reads.push_back(lowering.saved("rstd"));
  lowering.emit(Kernel::layer_norm_backward, "backward", reads, writes,
                {.flops = element_count(x.shape) * Affine(2 * layer_norm_flops)});
  if (lowering.input_needs_gradient()) lowering.give_input_gradient(0, dx);
  if (writes.size() == 3 && lowering.parameter_needs_gradient(0)) {
    lowering.give_parameter_gradient(0, writes[1]);
    lowering.give_parameter_gradient(1, writes[2]);
  }
}

AttributeSpec epsilon_attribute() {
  return {.name = "eps",
          .type = AttributeType::real,
          .doc = "added to the variance",
          .default_value = 1e-5,
          .minimum = 0};
}
AttributeSpec affine_attribute() {
  return {.name = "affine",
          .type = AttributeType::boolean,
          .doc = "learned scale and shift",
          .default_value = true};
}

}  // namespace

OperatorRow rows::batch_norm() {
  return {.name = "batch_norm",
          .doc = "batch normalization over axis 1, with running statistics",
          .attributes = {epsilon_attribute(),
                         {.name = "momentum",
                          .type = AttributeType::real,
                          .doc = "weight of the new batch in the running statistics",
                          .default_value = 0.1,
                          .minimum = 0,
                          .maximum = 1},
                         affine_attribute()},
          .infer = infer_batch_norm,
          .lowering = {LoweringRules{forward_batch_norm, backward_batch_norm},
                       LoweringRules{forward_batch_norm, backward_batch_norm}}};
}

OperatorRow rows::layer_norm() {
  return {.name = "layer_norm",
          .doc = "layer normalization over the last axes",
          .attributes = {{.name = "axes",
                          .type = AttributeType::integer,
                          .doc = "how many trailing axes",
                          .default_value = std::int64_t{1},
                          .minimum = 1},
                         epsilon_attribute(),
                         affine_attribute()},
          .infer = infer_layer_norm,
          .lowering = {LoweringRules{forward_layer_norm, backward_layer_norm},
                       LoweringRules{forward_layer_norm, backward_layer_norm}},
          .autocast = AutocastClass::float32};
}

}  // namespace stowage
