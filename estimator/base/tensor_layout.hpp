// TensorLayout: in which order an image's or a volume's elements lie in memory.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace stowage {

/// [n, c, h, w] as written, or with c innermost: PyTorch's contiguous_format, channels_last and
/// channels_last_3d.
enum class TensorLayout { contiguous, channels_last };

/// The words of --layout and of a description's `layout:`, by layout.
inline constexpr std::array<std::string_view, 2> layout_names{"nchw", "nhwc"};

[[nodiscard]] constexpr std::string_view to_string(TensorLayout layout) {
  return layout_names[static_cast<std::size_t>(layout)];
}

}  // namespace stowage
