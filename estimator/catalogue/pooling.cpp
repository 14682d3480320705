// max_pool1d, 2d, 3d and avg_pool1d, 2d, 3d over [batch, channels, ...].
// PyTorch's max pooling saves its input and int64 indices; our executor finds the maxima again from
// the input and the output, as cuDNN does.
#include "estimator/catalogue/pooling.hpp"

#include <fmt/format.h>

#include "estimator/base/bytes.hpp"
#include "estimator/catalogue/argument_view.hpp"
#include "estimator/catalogue/convolution.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

std::vector<std::int64_t> resolved_stride(const Attributes& attributes) {
  std::vector<std::int64_t> stride = attributes.integers("stride");
  for (std::size_t i = 0; i < stride.size(); ++i) {
    if (stride[i] == 0) stride[i] = attributes.integers("kernel")[i];
  }
  return stride;
}

std::int64_t dilation_of(const Attributes& attributes, std::size_t axis) {
  return attributes.has("dilation") ? attributes.integers("dilation")[axis] : 1;
}

tl::expected<Inference, InferenceError> infer_pooling_window(const Attributes& attributes,
                                                             std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const auto& kernel = attributes.integers("kernel");
  if (auto error = want_image(x, false, kernel.size())) return tl::unexpected(*error);
  const auto& padding = attributes.integers("padding");
  const std::vector<std::int64_t> stride = resolved_stride(attributes);
  Shape y{x.shape[0], x.shape[1]};
  Affine taps = 1;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const Window window{.kernel = kernel[i],
                        .stride = stride[i],
                        .padding_before = padding[i],
                        .padding_after = padding[i],
                        .dilation = dilation_of(attributes, i),
                        .ceil_mode = attributes.boolean("ceil_mode")};
    const std::int64_t extent =
        checked_add(checked_multiply(window.dilation, window.kernel - 1), 1);
    if (padding[i] > extent / 2) {
      return refuse(fmt::format("padding {} is more than half the kernel {}", padding[i], extent),
                    "padding");
    }
    const auto count = window_count(x.shape[2 + i].constant, window);
    if (!count) {
      return refuse(fmt::format("kernel {} is larger than the padded input {}", extent,
                                x.shape[2 + i].constant + 2 * padding[i]),
                    "kernel", 0);
    }
    y.emplace_back(*count);
    taps = taps * Affine(kernel[i]);
  }
  Inference result;
  result.flops = element_count(y) * taps;
  result.outputs = {{std::move(y), x.type}};
  return result;
}

Attributes window_attributes(const OperatorLowering& lowering) {
  Attributes attributes;
  attributes.set("stride", resolved_stride(lowering.attributes()));
  return attributes;
}

Affine window_flops(const OperatorLowering& lowering) {
  Affine flops = element_count(lowering.output_type().shape);
  for (const std::int64_t extent : lowering.attributes().integers("kernel")) {
    flops = flops * Affine(extent);
  }
  return flops;
}

/// AdaptiveMaxPooling2d.cu works on contiguous tensors only, and copies others.
bool works_contiguously(Kernel kernel) {
  return kernel == Kernel::adaptive_max_pool_forward ||
         kernel == Kernel::adaptive_max_pool_backward;
}

/// The tensor that the kernel writes: `result`, or a contiguous one that is then copied to it.
TensorView written_to(OperatorLowering& lowering, const TensorView& result, bool contiguous,
                      std::string_view suffix) {
  if (!contiguous || is_contiguous(result)) return result;
  return lowering.new_tensor(suffix, result.shape, result.type, StorageClass::workspace);
}

void copy_back(OperatorLowering& lowering, const TensorView& written, const TensorView& result,
               std::string_view suffix) {
  if (written.storage != result.storage) lowering.emit(Kernel::copy, suffix, {written}, {result});
}

/// PyTorch pools one axis as two of which one is 1: result and gradient are views.
bool is_seen_through_view(const TensorView& view) { return view.shape.size() == 3; }

TensorView make_pooled_output(OperatorLowering& lowering, bool channels_last) {
  TensorView y = laid_out(lowering.new_output(), channels_last);
  y.is_view = is_seen_through_view(y);
  lowering.set_output(0, y);
  return y;
}

}  // namespace

void give_pool_gradient_pytorch(OperatorLowering& lowering, TensorView dx) {
  dx.is_view = is_seen_through_view(dx);
  lowering.give_input_gradient(0, dx);
}

void forward_max_pool_stowage(OperatorLowering& lowering, Kernel kernel, NodeExtras extras) {
  const TensorView y = lowering.new_output();
  lowering.emit(kernel, "forward", {lowering.input()}, {y}, std::move(extras));
  lowering.save("input", lowering.input());
  lowering.save("result", y);
}

void forward_max_pool_pytorch(OperatorLowering& lowering, Kernel kernel, NodeExtras extras) {
  const bool channels_last = pools_channels_last(kernel, lowering.input());
  const bool contiguous = works_contiguously(kernel);
  const TensorView x = input_view(lowering, kernel);
  const TensorView y = make_pooled_output(lowering, channels_last);
  const TensorView indices = laid_out(
      lowering.new_tensor("indices", y.shape, DataType::int64, StorageClass::saved_auxiliary),
      channels_last);
  const TensorView maxima = written_to(lowering, y, contiguous, "output.contiguous");
  const TensorView places = written_to(lowering, indices, contiguous, "indices.contiguous");
  lowering.emit(kernel, "forward", {x}, {maxima, places}, std::move(extras));
  copy_back(lowering, maxima, y, "output.copy");
  copy_back(lowering, places, indices, "indices.copy");
  lowering.save("input", lowering.input());
  lowering.save("indices", indices);
}

void backward_max_pool_stowage(OperatorLowering& lowering, Kernel kernel, NodeExtras extras) {
  const TensorView dx = lowering.new_input_gradient();
  lowering.emit(kernel, "backward",
                {lowering.saved("input"), lowering.saved("result"), lowering.output_gradient()},
                {dx}, std::move(extras));
  lowering.give_input_gradient(0, dx);
}

void backward_max_pool_pytorch(OperatorLowering& lowering, Kernel kernel, NodeExtras extras) {
  const bool channels_last = pools_channels_last(kernel, lowering.saved("input"));
  const bool contiguous = works_contiguously(kernel);
  const TensorView dx = laid_out(lowering.new_input_gradient(), channels_last);
  const TensorView& input = lowering.saved("input");
  const TensorView dy =
      argument_view(lowering, kernel, 2, lowering.output_gradient(), input, "grad.contiguous");
  const TensorView places =
      argument_view(lowering, kernel, 1, lowering.saved("indices"), input, "indices.contiguous");
  const TensorView made = written_to(lowering, dx, contiguous, "grad_input.contiguous");
  const TensorView x = argument_view(lowering, kernel, 0, input, input, "backward.input");
  lowering.emit(kernel, "backward", {x, places, dy}, {made}, std::move(extras));
  copy_back(lowering, made, dx, "grad_input.copy");
  give_pool_gradient_pytorch(lowering, dx);
}

void backward_average_pool_stowage(OperatorLowering& lowering, Kernel kernel, NodeExtras extras) {
  const TensorView dx = lowering.new_input_gradient();
  lowering.emit(kernel, "backward", {lowering.output_gradient()}, {dx}, std::move(extras));
  lowering.give_input_gradient(0, dx);
}

void backward_average_pool_pytorch(OperatorLowering& lowering, Kernel kernel, NodeExtras extras) {
  const bool channels_last = pools_channels_last(kernel, lowering.input());
  const TensorView dx = laid_out(lowering.new_input_gradient(), channels_last);
  const TensorView dy = argument_view(lowering, kernel, 0, lowering.output_gradient(),
                                      lowering.input(), "grad.contiguous");
  lowering.emit(kernel, "backward", {dy}, {dx}, std::move(extras));
  give_pool_gradient_pytorch(lowering, dx);
}

namespace {

NodeExtras window_extras(const OperatorLowering& lowering) {
  return {.attributes = window_attributes(lowering), .flops = window_flops(lowering)};
}

using PoolRule = void (*)(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);

template <PoolRule rule, Kernel kernel>
void by_windows(OperatorLowering& lowering) {
  rule(lowering, kernel, window_extras(lowering));
}

void forward_pooling_average_stowage(OperatorLowering& lowering) {
  const TensorView y = lowering.new_output();
  lowering.emit(Kernel::avg_pool_forward, "forward", {lowering.input()}, {y},
                window_extras(lowering));
}

void forward_pooling_average_pytorch(OperatorLowering& lowering) {
  const bool channels_last = pools_channels_last(Kernel::avg_pool_forward, lowering.input());
  const TensorView x = input_view(lowering, Kernel::avg_pool_forward);
  const TensorView y = make_pooled_output(lowering, channels_last);
  lowering.emit(Kernel::avg_pool_forward, "forward", {x}, {y}, window_extras(lowering));
  lowering.save("input", lowering.input());  // though only its sizes are needed
}

AttributeSpec pool_stride(int spatial) {
  return window_attribute("stride", "step; 0: the kernel's extent", 0, 0, spatial);
}
AttributeSpec pool_padding(int spatial) {
  return window_attribute("padding", "on each side", 0, 0, spatial);
}
AttributeSpec ceil_mode() {
  return {.name = "ceil_mode",
          .type = AttributeType::boolean,
          .doc = "round the output size up",
          .default_value = false};
}

OperatorRow max_pool(std::string_view name, std::string_view doc, int spatial) {
  return {
      .name = name,
      .doc = doc,
      .attributes = {window_attribute("kernel", "extent", {}, 1, spatial), pool_stride(spatial),
                     pool_padding(spatial),
                     window_attribute("dilation", "spacing of the taps", 1, 1, spatial),
                     ceil_mode()},
      .infer = infer_pooling_window,
      .lowering = {.stowage = {by_windows<forward_max_pool_stowage, Kernel::max_pool_forward>,
                               by_windows<backward_max_pool_stowage, Kernel::max_pool_backward>},
                   .pytorch = {by_windows<forward_max_pool_pytorch, Kernel::max_pool_forward>,
                               by_windows<backward_max_pool_pytorch, Kernel::max_pool_backward>}}};
}

OperatorRow avg_pool(std::string_view name, std::string_view doc, int spatial) {
  return {.name = name,
          .doc = doc,
          .attributes = {window_attribute("kernel", "extent", {}, 1, spatial),
                         pool_stride(spatial),
                         pool_padding(spatial),
                         ceil_mode(),
                         {.name = "count_include_pad",
                          .type = AttributeType::boolean,
                          .doc = "padding counts in the average",
                          .default_value = true}},
          .infer = infer_pooling_window,
          .lowering = {
              .stowage = {forward_pooling_average_stowage,
                          by_windows<backward_average_pool_stowage, Kernel::avg_pool_backward>},
              .pytorch = {forward_pooling_average_pytorch,
                          by_windows<backward_average_pool_pytorch, Kernel::avg_pool_backward>}}};
}

}  // namespace

OperatorRow rows::max_pool1d() { return max_pool("max_pool1d", "1-D maximum pooling", 1); }
OperatorRow rows::max_pool2d() { return max_pool("max_pool2d", "2-D maximum pooling", 2); }
OperatorRow rows::max_pool3d() { return max_pool("max_pool3d", "3-D maximum pooling", 3); }
OperatorRow rows::avg_pool1d() { return avg_pool("avg_pool1d", "1-D average pooling", 1); }
OperatorRow rows::avg_pool2d() { return avg_pool("avg_pool2d", "2-D average pooling", 2); }
OperatorRow rows::avg_pool3d() { return avg_pool("avg_pool3d", "3-D average pooling", 3); }

}  // namespace stowage
