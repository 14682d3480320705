// layer_norm (over trailing axes) and group_norm (over groups of channels), and what the
// normalizations share. Saved for backward as in PyTorch's native_layer_norm and native_group_norm:
// the input and two statistics.
#include "estimator/catalogue/normalization.hpp"

#include <fmt/format.h>

#include "estimator/catalogue/argument_view.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

std::optional<InferenceError> want_channels(const TensorType& x) {
  if (x.shape.size() < 2) {
    return InferenceError{
        .message = fmt::format("wants [batch, channels, ...], but its input has shape {}",
                               to_string(x.shape)),
        .input = 0};
  }
  if (auto error = want_floating(x)) return error;
  return want_constant(x.shape[1], "channels");
}

tl::expected<Shape, InferenceError> normalized_axes(const Attributes& attributes,
                                                    const TensorType& x) {
  const std::int64_t axes = attributes.integer("axes");
  if (static_cast<std::int64_t>(x.shape.size()) < axes) {
    return refuse(fmt::format("normalizes the last {} axes, but its input has shape {}", axes,
                              to_string(x.shape)),
                  "axes", 0);
  }
  if (auto error = want_floating(x)) return tl::unexpected(*error);
  Shape normalized(x.shape.end() - static_cast<std::ptrdiff_t>(axes), x.shape.end());
  for (const Affine& dimension : normalized) {
    if (auto error = want_constant(dimension, "normalized axes")) return tl::unexpected(*error);
  }
  return normalized;
}

void add_affine_parameters(Inference& inference, const Attributes& attributes, const Shape& shape,
                           DataType type) {
  if (!attributes.boolean("affine")) return;
  inference.parameters.push_back({.name = "weight", .shape = shape, .type = type});
  if (attributes.has("bias") && !attributes.boolean("bias")) return;
  inference.parameters.push_back({.name = "bias", .shape = shape, .type = type});
}

void add_running_statistics(Inference& inference, const Shape& channels, DataType type) {
  for (const std::string_view name : {"running_mean", "running_var"}) {
    inference.parameters.push_back(
        {.name = name, .shape = channels, .type = type, .is_buffer = true});
  }
  inference.parameters.push_back(
      {.name = "num_batches_tracked", .shape = {}, .type = DataType::int64, .is_buffer = true});
}

std::vector<TensorView> all_affine_gradients(OperatorLowering& lowering) {
  std::vector<TensorView> gradients;
  for (int i = 0; i < lowering.parameter_count(); ++i) {
    gradients.push_back(lowering.new_parameter_gradient(i));
  }
  return gradients;
}

std::vector<TensorView> wanted_affine_gradients(OperatorLowering& lowering) {
  std::vector<TensorView> gradients;
  for (int i = 0; i < lowering.parameter_count(); ++i) {
    if (!lowering.parameter_needs_gradient(i)) continue;
    gradients.push_back(lowering.new_parameter_gradient(i));
  }
  return gradients;
}

void give_affine_gradients(OperatorLowering& lowering, const std::vector<TensorView>& gradients) {
  const bool of_all = std::ssize(gradients) == lowering.parameter_count();  // else of those wanted
  auto next = gradients.begin();
  for (int i = 0; i < lowering.parameter_count(); ++i) {
    const bool wanted = lowering.parameter_needs_gradient(i);
    if (!wanted && !of_all) continue;
    if (wanted) lowering.give_parameter_gradient(i, *next);
    ++next;
  }
}

namespace {

constexpr std::int64_t normalization_flops = 8;

tl::expected<Inference, InferenceError> infer_layer_norm(const Attributes& attributes,
                                                         std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const auto normalized = normalized_axes(attributes, x);
  if (!normalized) return tl::unexpected(normalized.error());
  Inference result;
  result.outputs = {x};
  add_affine_parameters(result, attributes, *normalized, x.type);
  result.flops = element_count(x.shape) * Affine(normalization_flops);
  return result;
}

/// Our executor's kernels need a bias if there is a weight.
TensorView zero_bias(OperatorLowering& lowering) {
  const TensorView weight = lowering.parameter(0);
  TensorView bias =
      lowering.new_tensor("zero_bias", weight.shape, weight.type, StorageClass::activation);
  Attributes attributes;
  attributes.set("value", 0.0);
  lowering.emit(Kernel::fill, "zero_bias", {}, {bias}, {.attributes = attributes});
  return bias;
}

std::vector<TensorView> norm_arguments(OperatorLowering& lowering, Kernel kernel) {
  std::vector<TensorView> reads{input_view(lowering, kernel)};
  for (int i = 0; i < lowering.parameter_count(); ++i) reads.push_back(lowering.parameter(i));
  return reads;
}

void emit_layer_norm(OperatorLowering& lowering, const std::vector<TensorView>& reads) {
  const TensorView& x = reads.front();
  const TensorView y = lowering.new_output();
  Shape rows = x.shape;
  rows.resize(rows.size() - static_cast<std::size_t>(lowering.attributes().integer("axes")));
  const DataType type = statistics_type(x.type);
  const TensorView mean = lowering.new_tensor("mean", rows, type, StorageClass::saved_auxiliary);
  const TensorView rstd = lowering.new_tensor("rstd", rows, type, StorageClass::saved_auxiliary);
  lowering.emit(Kernel::layer_norm_forward, "forward", reads, {y, mean, rstd},
                {.flops = element_count(x.shape) * Affine(normalization_flops)});
  lowering.save("input", lowering.input());
  for (int i = 0; i < lowering.parameter_count(); ++i) {
    lowering.save(i == 0 ? "weight" : "bias", lowering.parameter(i));
  }
  lowering.save("mean", mean);
  lowering.save("rstd", rstd);
}

void forward_layer_norm_stowage(OperatorLowering& lowering) {
  std::vector<TensorView> reads = norm_arguments(lowering, Kernel::layer_norm_forward);
  if (lowering.parameter_count() == 1) reads.push_back(zero_bias(lowering));
  emit_layer_norm(lowering, reads);
}

void forward_layer_norm_pytorch(OperatorLowering& lowering) {
  emit_layer_norm(lowering, norm_arguments(lowering, Kernel::layer_norm_forward));
}

/// The results of the backward kernel besides the input's gradient.
struct AffineWrites {
  std::vector<TensorView> gradients;
  std::vector<TensorView> unused = {};
};

void backward_statistics_norm(OperatorLowering& lowering, Kernel kernel,
                              AffineWrites (*affine_writes)(OperatorLowering& lowering)) {
  const TensorView x = argument_view(lowering, kernel, 0, lowering.saved("input"),
                                     lowering.saved("input"), "backward.input");
  const TensorView dy =
      argument_view(lowering, kernel, 1, lowering.output_gradient(), x, "grad.contiguous");
  const TensorView dx = lowering.new_input_gradient();
  std::vector<TensorView> reads{x, dy};
  if (lowering.parameter_count() > 0) reads.push_back(lowering.parameter(0));
  reads.push_back(lowering.saved("mean"));
  reads.push_back(lowering.saved("rstd"));
  const auto [gradients, unused] = affine_writes(lowering);
  std::vector<TensorView> writes{dx};
  writes.insert(writes.end(), gradients.begin(), gradients.end());
  writes.insert(writes.end(), unused.begin(), unused.end());
  lowering.emit(kernel, "backward", reads, writes,
                {.flops = element_count(x.shape) * Affine(2 * normalization_flops)});
  if (lowering.input_needs_gradient()) lowering.give_input_gradient(0, dx);
  give_affine_gradients(lowering, gradients);
}

template <MakeGradients make>
AffineWrites gradients_alone(OperatorLowering& lowering) {
  return {make(lowering)};
}

/// Our executor's kernels have a bias if there is a weight.
AffineWrites gradients_with_bias(OperatorLowering& lowering) {
  AffineWrites writes{all_affine_gradients(lowering)};
  if (writes.gradients.size() == 1) {
    const TensorView& weight = writes.gradients[0];
    writes.unused.push_back(
        lowering.new_tensor("grad_zero_bias", weight.shape, weight.type, StorageClass::temporary));
  }
  return writes;
}

template <Kernel kernel>
void backward_norm_stowage(OperatorLowering& lowering) {
  backward_statistics_norm(lowering, kernel, gradients_with_bias);
}

template <Kernel kernel>
void backward_norm_pytorch(OperatorLowering& lowering) {
  backward_statistics_norm(lowering, kernel, gradients_alone<wanted_affine_gradients>);
}

tl::expected<Inference, InferenceError> infer_group_norm(const Attributes& attributes,
                                                         std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_channels(x)) return tl::unexpected(*error);
  const std::int64_t groups = attributes.integer("groups");
  const std::int64_t channels = x.shape[1].constant;
  if (channels % groups != 0) {
    return refuse(fmt::format("groups {} does not divide its {} input channels", groups, channels),
                  "groups", 0);
  }
  Inference result;
  result.outputs = {x};
  add_affine_parameters(result, attributes, {x.shape[1]}, x.type);
  result.flops = element_count(x.shape) * Affine(normalization_flops);
  return result;
}

void emit_group_norm(OperatorLowering& lowering, const std::vector<TensorView>& reads) {
  const TensorView& x = reads.front();
  const TensorView y = lowering.new_output();
  const Shape groups{x.shape[0], lowering.attributes().integer("groups")};
  // native_group_norm keeps its statistics in the input's own format.
  const TensorView mean =
      lowering.new_tensor("mean", groups, x.type, StorageClass::saved_auxiliary);
  const TensorView rstd =
      lowering.new_tensor("rstd", groups, x.type, StorageClass::saved_auxiliary);
  lowering.emit(Kernel::group_norm_forward, "forward", reads, {y, mean, rstd},
                {.flops = element_count(x.shape) * Affine(normalization_flops)});
  lowering.save("input", lowering.input());
  if (lowering.parameter_count() > 0) lowering.save("weight", lowering.parameter(0));
  lowering.save("mean", mean);
  lowering.save("rstd", rstd);
}

void forward_group_norm_stowage(OperatorLowering& lowering) {
  std::vector<TensorView> reads = norm_arguments(lowering, Kernel::group_norm_forward);
  if (lowering.parameter_count() == 1) reads.push_back(zero_bias(lowering));
  emit_group_norm(lowering, reads);
}

void forward_group_norm_pytorch(OperatorLowering& lowering) {
  emit_group_norm(lowering, norm_arguments(lowering, Kernel::group_norm_forward));
}

}  // namespace

AttributeSpec epsilon_attribute(double value) {
  return {.name = "eps",
          .type = AttributeType::real,
          .doc = "added to the variance",
          .default_value = value,
          .minimum = 0};
}
AttributeSpec momentum_attribute() {
  return {.name = "momentum",
          .type = AttributeType::real,
          .doc = "weight of the new batch in the running statistics",
          .default_value = 0.1,
          .minimum = 0,
          .maximum = 1};
}
AttributeSpec affine_attribute(bool value) {
  return {.name = "affine",
          .type = AttributeType::boolean,
          .doc = "learned scale and shift",
          .default_value = value};
}
AttributeSpec affine_bias_attribute() {
  return {.name = "bias",
          .type = AttributeType::boolean,
          .doc = "with affine: the shift too",
          .default_value = true};
}
AttributeSpec running_statistics_attribute(bool value) {
  return {.name = "track_running_stats",
          .type = AttributeType::boolean,
          .doc = "keep running statistics and infer with them",
          .default_value = value};
}
AttributeSpec normalized_axes_attribute() {
  return {.name = "axes",
          .type = AttributeType::integer,
          .doc = "how many trailing axes",
          .default_value = std::int64_t{1},
          .minimum = 1};
}

OperatorRow rows::layer_norm() {
  return {.name = "layer_norm",
          .doc = "layer normalization over the last axes",
          .attributes = {normalized_axes_attribute(), epsilon_attribute(), affine_attribute(true),
                         affine_bias_attribute()},
          .infer = infer_layer_norm,
          .lowering = {.stowage = {forward_layer_norm_stowage,
                                   backward_norm_stowage<Kernel::layer_norm_backward>},
                       .pytorch = {forward_layer_norm_pytorch,
                                   backward_norm_pytorch<Kernel::layer_norm_backward>}},
          .autocast = AutocastClass::float32};
}

OperatorRow rows::group_norm() {
  return {.name = "group_norm",
          .doc = "normalization of each group of channels of each sample",
          .attributes = {{.name = "groups",
                          .type = AttributeType::integer,
                          .doc = "groups of channels",
                          .minimum = 1},
                         epsilon_attribute(),
                         affine_attribute(true),
                         affine_bias_attribute()},
          .infer = infer_group_norm,
          .lowering = {.stowage = {forward_group_norm_stowage,
                                   backward_norm_stowage<Kernel::group_norm_backward>},
                       .pytorch = {forward_group_norm_pytorch,
                                   backward_norm_pytorch<Kernel::group_norm_backward>}},
          .autocast = AutocastClass::float32};
}

}  // namespace stowage
