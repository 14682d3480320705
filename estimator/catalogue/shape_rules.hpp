// Pieces that several shape rules share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/model/operator_row.hpp"

namespace stowage {

[[nodiscard]] tl::unexpected<InferenceError> refuse(std::string message,
                                                    std::string_view attribute = {}, int input = -1,
                                                    std::string hint = {});

/// Refuses an input that is not of `rank` axes ("conv2d wants [batch, channels, height, width]").
[[nodiscard]] std::optional<InferenceError> want_rank(const TensorType& input, std::size_t rank,
                                                      std::string_view what, int index = 0);
/// Refuses an input that is not floating point.
[[nodiscard]] std::optional<InferenceError> want_floating(const TensorType& input, int index = 0);
/// Refuses a dimension that depends on the batch where it may not.
[[nodiscard]] std::optional<InferenceError> want_constant(const Affine& dimension,
                                                          std::string_view what, int index = 0);

/// Refuses what is not [batch, channels, height, width] of floating-point values with constant
/// height and width, and, if `constant_channels`, channels. With 1 or 3 spatial axes: [batch,
/// channels, length], [batch, channels, depth, height, width].
[[nodiscard]] std::optional<InferenceError> want_image(const TensorType& input,
                                                       bool constant_channels,
                                                       std::size_t spatial = 2);
/// The shape rule of an operator that works element by element: the input's type, `flops` each.
[[nodiscard]] tl::expected<Inference, InferenceError> infer_elementwise(
    std::span<const TensorType> inputs, std::int64_t flops);

/// One axis of a sliding window.
struct Window {
  std::int64_t kernel = 1, stride = 1, padding_before = 0, padding_after = 0, dilation = 1;
  bool ceil_mode = false;
};
/// floor((in + padding - dilation * (kernel - 1) - 1) / stride) + 1, or ceil as PyTorch's pooling
/// does it (the last window starts inside the input or its left padding). nullopt: no window fits.
[[nodiscard]] std::optional<std::int64_t> window_count(std::int64_t in, const Window& window);

/// `axis` counted from the end where negative; nullopt: out of range.
[[nodiscard]] std::optional<std::size_t> resolve_axis(std::int64_t axis, std::size_t rank);

/// NumPy's broadcasting of two shapes; nullopt: they do not go together.
[[nodiscard]] std::optional<Shape> broadcast(const Shape& a, const Shape& b);

}  // namespace stowage
