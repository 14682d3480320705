// batch_norm over the channel axis 1. Saved for backward as in PyTorch's native_batch_norm and
// cudnn_batch_norm: the input, the weight, the running statistics and the batch's own. PyTorch
// makes the gradients of weight and bias even where they are frozen (cudnn_batch_norm_backward has
// no mask), and frees them at once.
#include <fmt/format.h>

#include "estimator/catalogue/convolution.hpp"
#include "estimator/catalogue/normalization.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

bool batch_norm_runs_on_cudnn(const OperatorLowering& lowering) {
  if (!lowering.pytorch() || !lowering.attributes().boolean("affine")) return false;
  if (lowering.input().shape.size() < 3) return false;
  const DataType type = lowering.input().type;
  if (type == DataType::float16) return lowering.parameter(0).type == DataType::float32;
  return type != DataType::bfloat16;
}

namespace {

constexpr std::int64_t flops_per_element = 8;  // two statistics, normalise, scale, shift

tl::expected<Inference, InferenceError> infer(const Attributes& attributes,
                                              std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_channels(x)) return tl::unexpected(*error);
  if (!attributes.boolean("training") && !attributes.boolean("track_running_stats")) {
    return refuse("without running statistics there is nothing else to normalize by", "training");
  }
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

/// Normalizes by the batch's own statistics, not by the running ones.
bool of_the_batch(const OperatorLowering& lowering) {
  const Attributes& attributes = lowering.attributes();
  if (!attributes.boolean("track_running_stats")) return true;
  return lowering.training() && attributes.boolean("training");
}

void forward(OperatorLowering& lowering) {
  // at::batch_norm hands cuDNN a copy without gaps, which is saved; its own kernels make theirs.
  const bool copies = batch_norm_runs_on_cudnn(lowering);
  const bool channels_last = runs_channels_last(lowering, lowering.input());
  const TensorView x =
      copies ? lowering.contiguous(lowering.input(), "input.contiguous", channels_last)
             : lowering.contiguous_within(lowering.input(), "input.contiguous", channels_last);
  const Shape channels{x.shape[1]};
  BatchNormParameters parameters = parameters_of(lowering);
  const bool tracks = !parameters.running.empty();
  const bool by_batch = of_the_batch(lowering);
  if (!tracks && !lowering.pytorch()) parameters.running = passing_statistics(lowering, channels);
  std::vector<TensorView> reads{x};
  reads.insert(reads.end(), parameters.affine.begin(), parameters.affine.end());
  reads.insert(reads.end(), parameters.running.begin(), parameters.running.end());
  std::vector<TensorView> writes{laid_out(lowering.new_output(), channels_last)};
  if (lowering.pytorch() && !copies) {
    writes[0].strides = dense_strides(x.shape, lowering.input().strides);  // empty_like
  }
  lowering.set_output(0, writes[0]);
  // PyTorch's own kernel makes statistics in inference too.
  if (by_batch || (lowering.pytorch() && !batch_norm_runs_on_cudnn(lowering))) {
    for (const std::string_view name : {"save_mean", "save_invstd"}) {
      writes.push_back(lowering.new_tensor(name, channels, statistics_type(x.type),
                                           StorageClass::saved_auxiliary));
      lowering.save(name, writes.back());
    }
  }
  if (by_batch) writes.insert(writes.end(), parameters.running.begin(), parameters.running.end());
  Attributes attributes;  // running statistics are updated once
  if (lowering.recomputing()) attributes.set("momentum", 0.0);
  lowering.emit(by_batch ? Kernel::batch_norm_forward : Kernel::batch_norm_inference, "forward",
                reads, writes,
                {.attributes = attributes,
                 .holds = {lowering.input().storage},
                 .flops = element_count(x.shape) * Affine(flops_per_element)});
  const bool keeps_input = lowering.pytorch() || by_batch ||
                           (!parameters.affine.empty() && lowering.parameter_needs_gradient(0));
  if (keeps_input) lowering.save("input", copies ? x : lowering.input());
  if (!parameters.affine.empty()) lowering.save("weight", parameters.affine[0]);
  if (lowering.pytorch() && tracks) {
    lowering.save("running_mean", parameters.running[0]);
    lowering.save("running_var", parameters.running[1]);
  }
}

void backward_in_one_kernel(OperatorLowering& lowering) {
  const BatchNormParameters parameters = parameters_of(lowering);
  const bool by_batch = of_the_batch(lowering);
  const bool channels_last = runs_channels_last(lowering, lowering.saved("input"));
  const TensorView x =
      lowering.contiguous_within(lowering.saved("input"), "backward.input", channels_last);
  // Autograd's formula hands cuDNN a copy of the gradient; PyTorch's own kernels take any strides.
  const TensorView dy =
      batch_norm_runs_on_cudnn(lowering) && by_batch
          ? lowering.contiguous(lowering.output_gradient(), "grad.contiguous", channels_last)
          : lowering.output_gradient();
  TensorView dx = laid_out(lowering.new_input_gradient(), channels_last);
  if (lowering.pytorch() && !batch_norm_runs_on_cudnn(lowering)) {
    dx.strides = dense_strides(x.shape, lowering.saved("input").strides);
  }
  std::vector<TensorView> reads{x, dy};
  std::vector<TensorView> writes{dx};
  if (!parameters.affine.empty()) {
    reads.push_back(parameters.affine[0]);
    const bool masks = lowering.pytorch() && !(batch_norm_runs_on_cudnn(lowering) && by_batch);
    if (!masks || lowering.parameter_needs_gradient(0)) {
      writes.push_back(lowering.new_parameter_gradient(0));
      writes.push_back(lowering.new_parameter_gradient(1));
    }
  }
  reads.push_back(by_batch ? lowering.saved("save_mean") : parameters.running[0]);
  reads.push_back(by_batch ? lowering.saved("save_invstd") : parameters.running[1]);
  lowering.emit(Kernel::batch_norm_backward, "backward", reads, writes,
                {.flops = element_count(x.shape) * Affine(2 * flops_per_element)});
  if (lowering.input_needs_gradient()) lowering.give_input_gradient(0, dx);
  if (writes.size() == 3 && lowering.parameter_needs_gradient(0)) {
    lowering.give_parameter_gradient(0, writes[1]);
    lowering.give_parameter_gradient(1, writes[2]);
  }
}

// By running statistics the layer is a scale and a shift of each channel; our executor's backward
// is made of simple kernels.

TensorView made(OperatorLowering& lowering, Kernel kernel, std::string_view suffix,
                std::vector<TensorView> reads, const Shape& shape, Attributes attributes = {}) {
  const TensorView y =
      lowering.new_tensor(suffix, shape, reads[0].type, StorageClass::activation_gradient);
  lowering.emit(kernel, suffix, std::move(reads), {y},
                {.attributes = std::move(attributes), .flops = element_count(shape)});
  return y;
}

/// [channels] as [channels, 1, ...], to go with [batch, channels, ...].
TensorView along_channels(const TensorView& values, const TensorView& x) {
  Shape shape(x.shape.size() - 1, Affine(1));
  shape[0] = x.shape[1];
  return *reshaped(values, shape);
}

TensorView running_rstd(OperatorLowering& lowering, const TensorView& variance) {
  Attributes shift;
  shift.set("factor", 1.0);
  shift.set("offset", lowering.attributes().real("eps"));
  const TensorView shifted =
      made(lowering, Kernel::scale, "backward.variance", {variance}, variance.shape, shift);
  Attributes power;
  power.set("function", std::string("power"));
  power.set("exponent", -0.5);
  return made(lowering, Kernel::unary_forward, "backward.rstd", {shifted}, variance.shape, power);
}

void backward_by_running_statistics(OperatorLowering& lowering) {
  const BatchNormParameters parameters = parameters_of(lowering);
  const TensorView dy = lowering.output_gradient();
  const TensorView rstd = running_rstd(lowering, parameters.running[1]);
  if (!parameters.affine.empty() && lowering.parameter_needs_gradient(0)) {
    const TensorView x = lowering.saved("input");
    const TensorView centred = made(lowering, Kernel::subtract, "backward.centred",
                                    {x, along_channels(parameters.running[0], x)}, x.shape);
    const TensorView product =
        made(lowering, Kernel::multiply, "backward.product", {centred, dy}, x.shape);
    Attributes channels;
    channels.set("axis", std::int64_t{1});
    const TensorView sum = made(lowering, Kernel::channel_sum, "backward.product.sum", {product},
                                rstd.shape, channels);
    const TensorView dw = lowering.new_parameter_gradient(0);
    lowering.emit(Kernel::multiply, "backward.weight", {sum, rstd}, {dw});
    lowering.give_parameter_gradient(0, dw);
    const TensorView db = lowering.new_parameter_gradient(1);
    lowering.emit(Kernel::channel_sum, "backward.bias", {dy}, {db},
                  {.attributes = channels, .flops = element_count(dy.shape)});
    lowering.give_parameter_gradient(1, db);
  }
  if (!lowering.input_needs_gradient()) return;
  const TensorView factor = parameters.affine.empty()
                                ? rstd
                                : made(lowering, Kernel::multiply, "backward.factor",
                                       {rstd, parameters.affine[0]}, rstd.shape);
  const TensorView dx = lowering.new_input_gradient();
  lowering.emit(Kernel::multiply, "backward.data", {dy, along_channels(factor, dy)}, {dx},
                {.flops = element_count(dy.shape)});
  lowering.give_input_gradient(0, dx);
}

void backward(OperatorLowering& lowering) {
  if (lowering.pytorch() || of_the_batch(lowering))
    backward_in_one_kernel(lowering);
  else
    backward_by_running_statistics(lowering);
}

}  // namespace

OperatorRow rows::batch_norm() {
  return {
      .name = "batch_norm",
      .doc = "batch normalization over axis 1, with running statistics",
      .attributes = {epsilon_attribute(),
                     momentum_attribute(),
                     affine_attribute(true),
                     running_statistics_attribute(true),
                     {.name = "training",
                      .type = AttributeType::boolean,
                      .doc = "false: by the running statistics in training too, as after eval()",
                      .default_value = true}},
      .infer = infer,
      .lowering = {LoweringRules{forward, backward}, LoweringRules{forward, backward}}};
}

}  // namespace stowage
