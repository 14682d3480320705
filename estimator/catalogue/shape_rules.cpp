#include "estimator/catalogue/shape_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "estimator/base/bytes.hpp"

namespace stowage {

tl::unexpected<InferenceError> refuse(std::string message, std::string_view attribute, int input,
                                      std::string hint) {
  return tl::unexpected(InferenceError{.message = std::move(message),
                                       .attribute = attribute,
                                       .input = input,
                                       .hint = std::move(hint)});
}

std::optional<InferenceError> want_rank(const TensorType& input, std::size_t rank,
                                        std::string_view what, int index) {
  if (input.shape.size() == rank) return std::nullopt;
  return InferenceError{
      .message = fmt::format("wants {}, but its input has shape {}", what, to_string(input.shape)),
      .input = index};
}

std::optional<InferenceError> want_floating(const TensorType& input, int index) {
  if (is_floating_point(input.type)) return std::nullopt;
  return InferenceError{.message = fmt::format("wants floating-point values, but its input is {}",
                                               to_string(input.type)),
                        .input = index};
}

std::optional<InferenceError> want_constant(const Affine& dimension, std::string_view what,
                                            int index) {
  if (dimension.is_constant()) return std::nullopt;
  return InferenceError{.message = fmt::format("its {} ({}) may not depend on the batch", what,
                                               dimension.to_string()),
                        .input = index};
}

std::optional<InferenceError> want_image(const TensorType& input, bool constant_channels,
                                         std::size_t spatial) {
  static constexpr std::array<std::string_view, 3> shapes{
      "[batch, channels, length]", "[batch, channels, height, width]",
      "[batch, channels, depth, height, width]"};
  static constexpr std::array<std::string_view, 3> extents{"length", "height and width",
                                                           "depth, height and width"};
  if (auto error = want_rank(input, spatial + 2, shapes[spatial - 1])) return error;
  if (auto error = want_floating(input)) return error;
  for (std::size_t axis = constant_channels ? 1 : 2; axis < spatial + 2; ++axis) {
    if (input.shape[axis].is_constant()) continue;
    const std::string what = fmt::format("{}{}",
                                         !constant_channels ? ""
                                         : spatial == 1     ? "channels and "
                                                            : "channels, ",
                                         extents[spatial - 1]);
    return want_constant(input.shape[axis], what);
  }
  return std::nullopt;
}

tl::expected<Inference, InferenceError> infer_elementwise(std::span<const TensorType> inputs,
                                                          std::int64_t flops) {
  if (auto error = want_floating(inputs[0])) return tl::unexpected(*error);
  Inference result;
  result.outputs = {inputs[0]};
  result.flops = element_count(inputs[0].shape) * Affine(flops);
  return result;
}

std::optional<std::int64_t> window_count(std::int64_t in, const Window& window) {
  const std::int64_t padded =
      checked_add(checked_add(in, window.padding_before), window.padding_after);
  const std::int64_t extent = checked_add(checked_multiply(window.dilation, window.kernel - 1), 1);
  if (extent > padded) return std::nullopt;
  const std::int64_t slack = padded - extent;
  if (!window.ceil_mode) return slack / window.stride + 1;
  std::int64_t count = slack / window.stride + (slack % window.stride != 0 ? 1 : 0) + 1;
  if ((count - 1) * window.stride >= in + window.padding_before) --count;
  return count;
}

std::optional<std::size_t> resolve_axis(std::int64_t axis, std::size_t rank) {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape result(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const Affine x = i < a.size() ? a[a.size() - 1 - i] : Affine(1);
    const Affine y = i < b.size() ? b[b.size() - 1 - i] : Affine(1);
    if (x != y && x != Affine(1) && y != Affine(1)) return std::nullopt;
    result[rank - 1 - i] = x == Affine(1) ? y : x;
  }
  return result;
}

}  // namespace stowage
