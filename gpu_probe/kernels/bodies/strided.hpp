// Strided: where a tensor's elements lie when it is read in another shape: repeated along axes,
// with axes in another order, or as a part of a larger tensor.
#pragma once

#include "gpu_probe/kernels/bodies/division.hpp"

namespace stowage::body {

constexpr int most_axes = 8;

/// Element i of the shape `sizes`, in row-major order, lies at the sum of its positions times
/// `strides`.
struct Strided {
  Index sizes[most_axes], strides[most_axes];
  int axes;  ///< at least 1

  [[nodiscard]] STOWAGE_BODY Index offset(Index i) const {
    Index at = 0;
    for (int axis = axes - 1; axis > 0; --axis) {
      const Index before = quotient(i, sizes[axis]);
      at += (i - before * sizes[axis]) * strides[axis];
      i = before;
    }
    return at + i * strides[0];
  }
};

}  // namespace stowage::body
