#include "estimator/base/kernel_kind.hpp"

namespace stowage {

std::string_view to_string(KernelKind kind) {
  constexpr std::array<std::string_view, all_kernel_kinds.size()> names{"convolution",
                                                                        "grouped-convolution",
                                                                        "depthwise-convolution",
                                                                        "product",
                                                                        "attention",
                                                                        "normalization",
                                                                        "pointwise",
                                                                        "update"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace stowage
