// Makes a body's Strided from shapes and strides, with as few axes as possible.
#pragma once

#include "gpu_probe/kernels/bodies/strided.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

/// Joins neighbouring axes where it can. Throws KernelError where more than body::most_axes axes
/// remain.
[[nodiscard]] body::Strided strided(const Sizes& shape, const Sizes& strides);
/// `shape` repeated to `whole`. Throws KernelError where it does not broadcast.
[[nodiscard]] body::Strided repeated(const Sizes& shape, const Sizes& whole);

}  // namespace stowage::kernels
