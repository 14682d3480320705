// batch_norm over the channel axis 1. Saved for backward as in PyTorch's native_batch_norm and
// cudnn_batch_norm: the input, the weight, the running statistics and the batch's own. PyTorch
// makes the gradients of weight and bias even where they are frozen (cudnn_batch_norm_backward has
// no mask), and frees them at once.
#include <fmt/format.h>

#include "estimator/catalogue/normalization.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr std::int64_t flops_per_element = 8;  // two statistics, normalise, scale, shift

tl::expected<Inference, InferenceError> infer(const Attributes& attributes,
                                              std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_channels(x)) return tl::unexpected(*error);
  const Shape channels{x.shape[1]};
  Inference result;
  result.outputs = {x};
  add_affine_parameters(result, attributes, channels, x.type);
  if (attributes.boolean("track_running_stats")) add_running_statistics(result, channels, x.type);
  result.flops = element_count(x.shape) * Affine(flops_per_element);
  return result;
}

struct BatchNormParameters {
  std::vector<TensorView> affine;   // weight, bias
  std::vector<TensorView> running;  // mean, variance
};

BatchNormParameters parameters_of(const OperatorLowering& lowering) {
  BatchNormParameters parameters;
  int at = 0;
  if (lowering.attributes().boolean("affine")) {
    parameters.affine = {lowering.parameter(0), lowering.parameter(1)};
    at = 2;
  }
  if (lowering.attributes().boolean("track_running_stats")) {
    parameters.running = {lowering.parameter(at), lowering.parameter(at + 1)};
  }
  return parameters;
}

/// Our executor's kernel updates running statistics; where the layer has none it gets passing ones.
std::vector<TensorView> passing_statistics(OperatorLowering& lowering, const Shape& channels) {
  std::vector<TensorView> running;
  for (const std::string_view name : {"passing_mean", "passing_var"}) {
    running.push_back(
        lowering.new_tensor(name, channels, DataType::float32, StorageClass::temporary));
    Attributes attributes;
    attributes.set("value", 0.0);
    lowering.emit(Kernel::fill, name, {}, {running.back()}, {.attributes = attributes});
  }
  return running;
}

void forward(OperatorLowering& lowering) {
  const TensorView x = lowering.contiguous(lowering.input(), "input.contiguous");
  const Shape channels{x.shape[1]};
  BatchNormParameters parameters = parameters_of(lowering);
  const bool of_the_batch = lowering.training() || parameters.running.empty();
  const bool tracks = !parameters.running.empty();
  if (!tracks && !lowering.pytorch()) {
    parameters.running = passing_statistics(lowering, channels);
  }
  std::vector<TensorView> reads{x};
  reads.insert(reads.end(), parameters.affine.begin(), parameters.affine.end());
  reads.insert(reads.end(), parameters.running.begin(), parameters.running.end());
  const Affine flops = element_count(x.shape) * Affine(flops_per_element);
  const TensorView y = lowering.new_output();
  // Without weight PyTorch takes its own kernel, which makes statistics in inference too.
  const bool makes_statistics = of_the_batch || (lowering.pytorch() && parameters.affine.empty());
  std::vector<TensorView> writes{y};
  if (makes_statistics) {
    for (const std::string_view name : {"save_mean", "save_invstd"}) {
      writes.push_back(
          lowering.new_tensor(name, channels, DataType::float32, StorageClass::saved_auxiliary));
    }
  }
  if (!of_the_batch) {
    lowering.emit(Kernel::batch_norm_inference, "forward", reads, writes, {.flops = flops});
    return;
  }
  writes.insert(writes.end(), parameters.running.begin(), parameters.running.end());
  lowering.emit(Kernel::batch_norm_forward, "forward", reads, writes, {.flops = flops});
  lowering.save("input", x);
  if (!parameters.affine.empty()) lowering.save("weight", parameters.affine[0]);
  if (lowering.pytorch() && tracks) {
    lowering.save("running_mean", parameters.running[0]);
    lowering.save("running_var", parameters.running[1]);
  }
  lowering.save("save_mean", writes[1]);
  lowering.save("save_invstd", writes[2]);
}

/// PyTorch's choice of cuDNN (_select_batch_norm_backend, ATen/native/Normalization.cpp).
bool runs_on_cudnn(const TensorView& x) { return x.type != DataType::bfloat16; }

void backward(OperatorLowering& lowering) {
  const TensorView x = lowering.saved("input");
  const BatchNormParameters parameters = parameters_of(lowering);
  const TensorView dy = lowering.contiguous(lowering.output_gradient(), "grad.contiguous");
  const TensorView dx = lowering.new_input_gradient();
  std::vector<TensorView> reads{x, dy};
  std::vector<TensorView> writes{dx};
  if (!parameters.affine.empty()) {
    reads.push_back(parameters.affine[0]);
    if (!lowering.pytorch() || runs_on_cudnn(x) || lowering.parameter_needs_gradient(0)) {
      writes.push_back(lowering.new_parameter_gradient(0));
      writes.push_back(lowering.new_parameter_gradient(1));
    }
  }
  reads.push_back(lowering.saved("save_mean"));
  reads.push_back(lowering.saved("save_invstd"));
  lowering.emit(Kernel::batch_norm_backward, "backward", reads, writes,
                {.flops = element_count(x.shape) * Affine(2 * flops_per_element)});
  if (lowering.input_needs_gradient()) lowering.give_input_gradient(0, dx);
  if (writes.size() == 3 && lowering.parameter_needs_gradient(0)) {
    lowering.give_parameter_gradient(0, writes[1]);
    lowering.give_parameter_gradient(1, writes[2]);
  }
}

}  // namespace

OperatorRow rows::batch_norm() {
  return {.name = "batch_norm",
          .doc = "batch normalization over axis 1, with running statistics",
          .attributes = {epsilon_attribute(), momentum_attribute(), affine_attribute(true),
                         running_statistics_attribute(true)},
          .infer = infer,
          .lowering = {LoweringRules{forward, backward}, LoweringRules{forward, backward}}};
}

}  // namespace stowage
