// The attribute `function` with its settings, for kernels that apply a unary function.
#pragma once

#include "gpu_probe/kernels/bodies/unary.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

/// Throws KernelError where there is no such function, or one of its settings is missing.
[[nodiscard]] body::Unary unary_function(const KernelCall& call);

}  // namespace stowage::kernels
