// OnnxWindow: the window of a convolution or pooling, from kernel_shape, strides, pads, dilations
// and auto_pad.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "estimator/onnx/onnx_value.hpp"

namespace stowage {

struct OnnxWindow {
  std::vector<std::int64_t> kernel, stride, before, after, dilation;  ///< one number per axis

  [[nodiscard]] bool is_symmetric() const { return before == after; }
  /// The padding: one number per axis if both sides are equal, else the numbers before and after
  /// for each axis.
  [[nodiscard]] std::vector<std::int64_t> padding_pairs_or_single() const;
};

/// nullopt: numbers are missing or negative, or auto_pad needs an input size that is not fixed.
[[nodiscard]] std::optional<OnnxWindow> window_of(const OnnxNode& node, const Shape& input,
                                                  std::vector<std::int64_t> kernel);
/// The spatial sizes of a filter [channels, channels / groups, extents...].
[[nodiscard]] std::vector<std::int64_t> filter_extents(const Shape& filter);

}  // namespace stowage
