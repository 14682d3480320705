// The axes that a reduction goes over: attribute `axes`.
#pragma once

#include <vector>

#include "gpu_probe/kernels/bodies/strided.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

/// By axis of x, whether it is reduced. KernelError where x over its axes does not give y, which
/// has the reduced ones as ones or not at all.
[[nodiscard]] std::vector<bool> reduced_axes(const KernelCall& call, const TensorArgument& x,
                                             const TensorArgument& y);

/// Where in x the places of y lie, and the elements of each.
struct Reduction {
  body::Strided kept, gone;
  std::int64_t places = 1, together = 1;
};
[[nodiscard]] Reduction reduction(const Sizes& x, const std::vector<bool>& reduced);

}  // namespace stowage::kernels
