// Convolutions in float64, which oneDNN has not: loops by the definition, in a fixed order. Slow
// and right, since all that they are for is to be compared with.
#pragma once

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {

/// Which of a convolution's three tensors is computed from the other two.
enum class Computed { y, x, w };

/// Of 1 to 3 spatial axes, whose lists have a number each.
struct PlainConvolution {
  Sizes x, w, y;  ///< [batch, in, ...], [out, in / groups, ...], [batch, out, ...]
  Sizes stride, dilation, padding;
  std::int64_t groups = 1;
};

void plain_convolution(Computed computed, const PlainConvolution& c, double* x, double* w,
                       double* y);

}  // namespace stowage::host
