// Visits a tensor in row-major order beside another one with other strides.
#pragma once

#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

/// The strides of a tensor of `shape` repeated to `whole`: 0 along repeated axes. Throws
/// KernelError where it does not broadcast.
[[nodiscard]] Sizes broadcast_strides(const Sizes& shape, const Sizes& whole);

/// Calls visit(i, at) for each element of `shape` in row-major order; `at` is the offset by
/// `strides`.
template <typename Visit>
void walk(const Sizes& shape, const Sizes& strides, Visit visit) {
  const std::int64_t total = count(shape);
  Sizes index(shape.size(), 0);
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < total; ++i) {
    visit(i, at);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      at += strides[axis];
      if (++index[axis] < shape[axis]) break;
      at -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace stowage::kernels
