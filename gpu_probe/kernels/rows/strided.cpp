#include "gpu_probe/kernels/rows/strided.hpp"

#include "gpu_probe/kernels/rows/strides.hpp"

namespace stowage::kernels {

body::Strided strided(const Sizes& shape, const Sizes& strides) {
  Sizes sizes, steps;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    if (!sizes.empty() && steps.back() == strides[axis] * shape[axis]) {
      sizes.back() *= shape[axis];
      steps.back() = strides[axis];
    } else {
      sizes.push_back(shape[axis]);
      steps.push_back(strides[axis]);
    }
  }
  require(sizes.size() <= body::most_axes, "{} has more than {} axes that lie apart",
          shape_text(shape), body::most_axes);
  body::Strided result{.sizes = {1}, .strides = {0}, .axes = 1};
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    result.sizes[axis] = sizes[axis];
    result.strides[axis] = steps[axis];
    result.axes = static_cast<int>(axis) + 1;
  }
  return result;
}

body::Strided repeated(const Sizes& shape, const Sizes& whole) {
  return strided(whole, broadcast_strides(shape, whole));
}

}  // namespace stowage::kernels
