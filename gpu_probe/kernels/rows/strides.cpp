#include "gpu_probe/kernels/rows/strides.hpp"

namespace stowage::kernels {

Sizes broadcast_strides(const Sizes& shape, const Sizes& whole) {
  const Sizes strides = row_major_strides(shape);
  Sizes repeated(whole.size(), 0);
  bool fits = shape.size() <= whole.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) {
    const std::size_t at = whole.size() - shape.size() + i;
    fits = shape[i] == whole[at] || shape[i] == 1;
    if (shape[i] != 1) repeated[at] = strides[i];
  }
  require(fits, "{} does not broadcast to {}", shape_text(shape), shape_text(whole));
  return repeated;
}

}  // namespace stowage::kernels
