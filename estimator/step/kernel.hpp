// Kernel: which kernel a node calls. kernel_list.hpp has the rows, kernel_table.hpp what they say.
#pragma once

#include <optional>
#include <string_view>

#include "estimator/step/kernel_list.hpp"

namespace stowage {

// clang-format off
enum class Kernel {
#define STOWAGE_ENUMERATOR(name, ...) name,
  STOWAGE_KERNELS(STOWAGE_ENUMERATOR, STOWAGE_ENUMERATOR, STOWAGE_ENUMERATOR)
#undef STOWAGE_ENUMERATOR
  foreign,  ///< of a step that was not lowered here: named by KernelNode::foreign_kernel, run
            ///< nowhere
};
// clang-format on
/// Without `foreign`, which is no kernel of the program's.
inline constexpr int kernel_count = static_cast<int>(Kernel::foreign);

/// The enumerator's own name: "convolution_forward".
[[nodiscard]] std::string_view to_string(Kernel kernel);
/// Of such a name; `foreign` is not one.
[[nodiscard]] std::optional<Kernel> find_kernel(std::string_view name);

}  // namespace stowage
