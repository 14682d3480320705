// The axes that a reduction goes over, from the attribute `axes`.
#pragma once

#include <vector>

#include "gpu_probe/kernels/bodies/strided.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

/// For each axis of x, whether it is reduced. Throws KernelError where y does not have the shape of
/// x reduced over these axes, with reduced axes of size 1 or without them.
[[nodiscard]] std::vector<bool> reduced_axes(const KernelCall& call, const TensorArgument& x,
                                             const TensorArgument& y);

/// Where in x the elements of y begin, and the elements of x that each reduces.
struct Reduction {
  body::Strided kept, gone;
  std::int64_t places = 1, together = 1;
};
[[nodiscard]] Reduction reduction(const Sizes& x, const std::vector<bool>& reduced);

}  // namespace stowage::kernels
