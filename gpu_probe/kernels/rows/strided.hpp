// From shapes and strides to a body's, with as few axes as they take.
#pragma once

#include "gpu_probe/kernels/bodies/strided.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

/// KernelError where more than body::most_axes axes are left once neighbours are taken together.
[[nodiscard]] body::Strided strided(const Sizes& shape, const Sizes& strides);
/// `shape` repeated to `whole`. KernelError where it does not broadcast.
[[nodiscard]] body::Strided repeated(const Sizes& shape, const Sizes& whole);

}  // namespace stowage::kernels
