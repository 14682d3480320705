// Convolutions in float64, which oneDNN does not have: loops by the definition, in a fixed order.
// They are slow; they serve as the reference in comparisons.
#pragma once

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {

/// Which of a convolution's three tensors is computed from the other two.
enum class Computed { y, x, w };

/// A convolution of 1 to 3 spatial axes; its lists have one number for each.
struct PlainConvolution {
  Sizes x, w, y;  ///< [batch, in, ...], [out, in / groups, ...], [batch, out, ...]
  Sizes stride, dilation, padding;
  std::int64_t groups = 1;
};

void plain_convolution(Computed computed, const PlainConvolution& c, double* x, double* w,
                       double* y);

}  // namespace stowage::host
