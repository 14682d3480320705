// Attribute `function` with its settings, for the kernels that apply one.
#pragma once

#include "gpu_probe/kernels/bodies/unary.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

/// KernelError where there is no such function, or a setting of it is missing.
[[nodiscard]] body::Unary unary_function(const KernelCall& call);

}  // namespace stowage::kernels
