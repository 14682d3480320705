// Walking a tensor in row-major order beside another one that is laid out otherwise.
#pragma once

#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

/// Strides of `shape` seen as `whole`: 0 along the axes that it is repeated over. KernelError where
/// it does not broadcast.
[[nodiscard]] Sizes broadcast_strides(const Sizes& shape, const Sizes& whole);

/// Calls visit(i, at) for the elements of `shape` in row-major order, `at` being the offset that
/// `strides` give.
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
