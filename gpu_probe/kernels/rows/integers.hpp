// Arguments of whole numbers.
#pragma once

#include "gpu_probe/kernels/bodies/integers.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

/// The elements of a tensor of any integer format. KernelError for other types.
[[nodiscard]] body::Integers any_integers(const TensorArgument& argument);
inline constexpr body::Integers no_integers{nullptr, body::IntegerFormat::int64};

}  // namespace stowage::kernels
