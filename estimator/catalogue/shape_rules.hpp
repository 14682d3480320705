// Checks and formulas that several shape rules share.
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

/// An error if the input does not have `rank` axes ("conv2d wants [batch, channels, height,
/// width]").
[[nodiscard]] std::optional<InferenceError> want_rank(const TensorType& input, std::size_t rank,
                                                      std::string_view what, int index = 0);
/// An error if the input is not floating point.
[[nodiscard]] std::optional<InferenceError> want_floating(const TensorType& input, int index = 0);
/// An error if the dimension depends on the batch.
[[nodiscard]] std::optional<InferenceError> want_constant(const Affine& dimension,
                                                          std::string_view what, int index = 0);

/// An error if the input is not [batch, channels, height, width] of floating-point values with
/// constant height and width and, if `constant_channels`, constant channels. With 1 or 3 spatial
/// axes: [batch, channels, length] or [batch, channels, depth, height, width].
[[nodiscard]] std::optional<InferenceError> want_image(const TensorType& input,
                                                       bool constant_channels,
                                                       std::size_t spatial = 2);
/// The shape rule of an element-by-element operator: the input's type, and `flops` operations per
/// element.
[[nodiscard]] tl::expected<Inference, InferenceError> infer_elementwise(
    std::span<const TensorType> inputs, std::int64_t flops);

/// A sliding window along one axis.
struct Window {
  std::int64_t kernel = 1, stride = 1, padding_before = 0, padding_after = 0, dilation = 1;
  bool ceil_mode = false;
};
/// The number of windows: floor((in + padding - dilation * (kernel - 1) - 1) / stride) + 1, or with
/// ceil as in PyTorch's pooling (the last window starts inside the input or its left padding).
/// nullopt: no window fits.
[[nodiscard]] std::optional<std::int64_t> window_count(std::int64_t in, const Window& window);

/// The axis counted from 0; a negative `axis` counts from the end. nullopt: out of range.
[[nodiscard]] std::optional<std::size_t> resolve_axis(std::int64_t axis, std::size_t rank);

/// The shape of two shapes broadcast as in NumPy; nullopt: they do not match.
[[nodiscard]] std::optional<Shape> broadcast(const Shape& a, const Shape& b);

}  // namespace stowage
