// Whose kernels a step graph is made of.
#pragma once

#include <array>
#include <string_view>

namespace stowage {

enum class KernelSet {
  pytorch,  ///< what eager PyTorch runs on a CUDA device: int64 pooling indices, foreach
            ///< temporaries
  stowage,  ///< what our own executor runs, on the GPU and on the CPU alike
};
inline constexpr std::array all_kernel_sets{KernelSet::pytorch, KernelSet::stowage};

[[nodiscard]] std::string_view to_string(KernelSet set);

}  // namespace stowage
