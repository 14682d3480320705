// The table of kernels as text: docs/kernels.md, which `stowage help kernels` prints.
#pragma once

#include <string>

namespace stowage {

/// The whole file. A test holds the file to it.
[[nodiscard]] std::string kernel_reference();

}  // namespace stowage
