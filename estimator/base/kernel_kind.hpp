// What kind of kernel a call runs, as far as the rates that it reaches depend on it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stowage {

enum class KernelKind : std::uint8_t {
  convolution,            ///< of one group
  grouped_convolution,    ///< of several groups of several channels each
  depthwise_convolution,  ///< of one input channel a group: no matrix product to speak of
  product,                ///< matrix products, also batched ones and those of recurrent layers
  attention,              ///< fused scaled dot product attention
  normalization,          ///< that makes its statistics, and its backward
  pointwise,              ///< everything else: element by element, reductions, copies, losses
  update,                 ///< of several parameters, an operation at a time (PyTorch's foreach)
};
inline constexpr std::array all_kernel_kinds{KernelKind::convolution,
                                             KernelKind::grouped_convolution,
                                             KernelKind::depthwise_convolution,
                                             KernelKind::product,
                                             KernelKind::attention,
                                             KernelKind::normalization,
                                             KernelKind::pointwise,
                                             KernelKind::update};
[[nodiscard]] std::string_view to_string(KernelKind kind);  ///< "grouped-convolution"

}  // namespace stowage
