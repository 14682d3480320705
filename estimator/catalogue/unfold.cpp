// unfold (im2col) and fold (col2im): the windows of images as columns, and columns summed into
// images. Each is the other's gradient; nothing is saved (ATen/native/cuda/Im2Col.cu).
#include <fmt/format.h>

#include "estimator/base/bytes.hpp"
#include "estimator/catalogue/convolution.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

/// The windows over an image of this height and width, along both axes.
tl::expected<std::int64_t, InferenceError> windows_over(const Attributes& attributes,
                                                        std::int64_t height, std::int64_t width,
                                                        std::string_view attribute, int input) {
  std::int64_t windows = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t size = i == 0 ? height : width;
    const std::int64_t padding = attributes.integers("padding")[i];
    const Window window{.kernel = attributes.integers("kernel")[i],
                        .stride = attributes.integers("stride")[i],
                        .padding_before = padding,
                        .padding_after = padding,
                        .dilation = attributes.integers("dilation")[i]};
    const auto count = window_count(size, window);
    if (!count) {
      return refuse(
          fmt::format("kernel {} does not fit into {} with its padding", window.kernel, size),
          attribute, input);
    }
    windows = checked_multiply(windows, *count);
  }
  return windows;
}

std::int64_t taps_of(const Attributes& attributes) {
  return checked_multiply(attributes.integers("kernel")[0], attributes.integers("kernel")[1]);
}

tl::expected<Inference, InferenceError> infer_unfold(const Attributes& attributes,
                                                     std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_image(x, true)) return tl::unexpected(*error);
  const auto windows =
      windows_over(attributes, x.shape[2].constant, x.shape[3].constant, "kernel", 0);
  if (!windows) return tl::unexpected(windows.error());
  Inference result;
  result.outputs = {
      {{x.shape[0], x.shape[1] * Affine(taps_of(attributes)), Affine(*windows)}, x.type}};
  return result;
}

tl::expected<Inference, InferenceError> infer_fold(const Attributes& attributes,
                                                   std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_rank(x, 3, "[batch, channels times taps, windows]")) {
    return tl::unexpected(*error);
  }
  if (auto error = want_floating(x)) return tl::unexpected(*error);
  if (auto error = want_constant(x.shape[1], "channels times taps")) return tl::unexpected(*error);
  const auto& size = attributes.integers("size");
  const auto windows = windows_over(attributes, size[0], size[1], "size", -1);
  if (!windows) return tl::unexpected(windows.error());
  const std::int64_t taps = taps_of(attributes);
  if (x.shape[2] != Affine(*windows)) {
    return refuse(
        fmt::format("an image of {} by {} has {} windows, and its input {} has {}", size[0],
                    size[1], *windows, to_string(x.shape), x.shape[2].to_string()),
        "size", 0);
  }
  if (x.shape[1].constant % taps != 0) {
    return refuse(fmt::format("a kernel of {} taps does not divide the {} rows of its input", taps,
                              x.shape[1].constant),
                  "kernel", 0);
  }
  Inference result;
  result.outputs = {
      {{x.shape[0], Affine(x.shape[1].constant / taps), Affine(size[0]), Affine(size[1])}, x.type}};
  result.flops = element_count(x.shape);
  return result;
}

template <Kernel kernel>
void forward_windows(OperatorLowering& lowering) {
  const TensorView x = lowering.contiguous_within(lowering.input(), "input.contiguous");
  lowering.emit(kernel, "forward", {x}, {lowering.new_output()}, {.flops = element_count(x.shape)});
}

template <Kernel kernel>
void backward_windows(OperatorLowering& lowering) {
  const TensorView dy = lowering.contiguous_within(lowering.output_gradient(), "grad.contiguous");
  const TensorView dx = lowering.new_input_gradient();
  lowering.emit(kernel, "backward", {dy}, {dx}, {.flops = element_count(dy.shape)});
  lowering.give_input_gradient(0, dx);
}

std::vector<AttributeSpec> unfold_attributes() {
  return {window_attribute("kernel", "extent of a window", {}, 1, 2),
          window_attribute("stride", "step", 1, 1, 2),
          window_attribute("padding", "zeros on each side", 0, 0, 2),
          window_attribute("dilation", "spacing of the taps", 1, 1, 2)};
}

}  // namespace

OperatorRow rows::unfold() {
  return {
      .name = "unfold",
      .doc =
          "windows of [batch, channels, height, width] as columns: [batch, channels times "
          "taps, windows]",
      .attributes = unfold_attributes(),
      .infer = infer_unfold,
      .lowering = {.stowage = {forward_windows<Kernel::unfold>, backward_windows<Kernel::fold>}}};
}

OperatorRow rows::fold() {
  std::vector<AttributeSpec> attributes = unfold_attributes();
  attributes.insert(attributes.begin(),
                    window_attribute("size", "height and width of the image", {}, 1, 2));
  return {
      .name = "fold",
      .doc = "columns of windows summed into an image, the reverse of unfold",
      .attributes = std::move(attributes),
      .infer = infer_fold,
      .lowering = {.stowage = {forward_windows<Kernel::fold>, backward_windows<Kernel::unfold>}}};
}

}  // namespace stowage
