// The window of a convolution or a pooling: kernel_shape, strides, pads, dilations, auto_pad.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "estimator/onnx/onnx_value.hpp"

namespace stowage {

struct OnnxWindow {
  std::vector<std::int64_t> kernel, stride, before, after, dilation;  ///< one number an axis

  [[nodiscard]] bool is_symmetric() const { return before == after; }
  /// One number an axis where both sides are alike; else before and after of each.
  [[nodiscard]] std::vector<std::int64_t> padding_pairs_or_single() const;
};

/// nullopt: numbers are missing or negative, or auto_pad wants an input whose size is not fixed.
[[nodiscard]] std::optional<OnnxWindow> window_of(const OnnxNode& node, const Shape& input,
                                                  std::vector<std::int64_t> kernel);
/// Of [channels, channels / groups, extents...].
[[nodiscard]] std::vector<std::int64_t> filter_extents(const Shape& filter);

}  // namespace stowage
