// Arguments of whole numbers.
#pragma once

#include "gpu_probe/kernels/bodies/integers.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

/// Of whatever format of whole numbers. KernelError where it has none.
[[nodiscard]] body::Integers any_integers(const TensorArgument& argument);
inline constexpr body::Integers no_integers{nullptr, body::IntegerFormat::int64};

}  // namespace stowage::kernels
