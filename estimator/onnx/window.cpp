#include "estimator/onnx/window.hpp"

#include <algorithm>

namespace stowage {

std::vector<std::int64_t> OnnxWindow::padding_pairs_or_single() const {
  if (is_symmetric()) return before;
  std::vector<std::int64_t> pairs;
  for (std::size_t i = 0; i < before.size(); ++i) {
    pairs.push_back(before[i]);
    pairs.push_back(after[i]);
  }
  return pairs;
}

std::vector<std::int64_t> filter_extents(const Shape& filter) {
  std::vector<std::int64_t> extents;
  for (std::size_t i = 2; i < filter.size(); ++i) extents.push_back(filter[i].constant);
  return extents;
}

/// Fills in missing strides, dilations and pads, checks their number and range, and computes the
/// padding that auto_pad stands for.
std::optional<OnnxWindow> window_of(const OnnxNode& node, const Shape& input,
                                    std::vector<std::int64_t> kernel) {
  constexpr std::int64_t most = std::int64_t{1} << 31U;
  OnnxWindow window{.kernel = std::move(kernel),
                    .stride = node.integers("strides"),
                    .dilation = node.integers("dilations")};
  const std::size_t axes = window.kernel.size();
  if (axes == 0 || axes + 2 != input.size()) return std::nullopt;
  if (window.stride.empty()) window.stride.assign(axes, 1);
  if (window.dilation.empty()) window.dilation.assign(axes, 1);
  std::vector<std::int64_t> pads = node.integers("pads");
  const std::string automatic = node.text("auto_pad", "NOTSET");
  if (pads.empty() || automatic == "VALID") pads.assign(2 * axes, 0);
  if (pads.size() != 2 * axes || window.stride.size() != axes || window.dilation.size() != axes) {
    return std::nullopt;
  }
  for (const auto* numbers : {&window.kernel, &window.stride, &window.dilation}) {
    for (const std::int64_t number : *numbers) {
      if (number < 1 || number > most) return std::nullopt;
    }
  }
  for (std::size_t i = 0; i < axes; ++i) {
    std::int64_t before = pads[i];
    std::int64_t after = pads[axes + i];
    if (automatic.starts_with("SAME")) {
      const Affine extent = input[2 + i];
      if (!extent.is_constant() || extent.constant < 1) return std::nullopt;
      const std::int64_t steps = (extent.constant - 1) / window.stride[i];
      const std::int64_t reach =
          checked_add(checked_multiply(window.kernel[i] - 1, window.dilation[i]), 1);
      const std::int64_t total = std::max<std::int64_t>(
          checked_add(checked_multiply(steps, window.stride[i]), reach) - extent.constant, 0);
      before = automatic == "SAME_LOWER" ? total - total / 2 : total / 2;
      after = total - before;
    }
    if (before < 0 || after < 0) return std::nullopt;
    window.before.push_back(before);
    window.after.push_back(after);
  }
  return window;
}

}  // namespace stowage
