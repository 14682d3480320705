#include "gpu_probe/kernels/rows/reduced_axes.hpp"

#include "gpu_probe/kernels/rows/strided.hpp"

namespace stowage::kernels {
namespace {

Sizes without_ones(Sizes shape) {
  std::erase(shape, 1);
  return shape;
}

}  // namespace

std::vector<bool> reduced_axes(const KernelCall& call, const TensorArgument& x,
                               const TensorArgument& y) {
  Sizes kept = x.shape;
  const auto rank = static_cast<std::int64_t>(kept.size());
  std::vector<bool> reduced(kept.size(), false);
  for (std::int64_t axis : list(call, "axes")) {
    if (axis < 0) axis += rank;
    require(axis >= 0 && axis < rank, "attribute 'axes' names axis {} of {}", axis,
            shape_text(x.shape));
    const auto at = static_cast<std::size_t>(axis);
    kept[at] = 1;
    reduced[at] = true;
  }
  require(without_ones(y.shape) == without_ones(kept), "{} over its axes does not give {}",
          shape_text(x.shape), shape_text(y.shape));
  return reduced;
}

Reduction reduction(const Sizes& x, const std::vector<bool>& reduced) {
  const Sizes strides = row_major_strides(x);
  Sizes sizes[2], steps[2];
  for (std::size_t axis = 0; axis < x.size(); ++axis) {
    sizes[reduced[axis] ? 1 : 0].push_back(x[axis]);
    steps[reduced[axis] ? 1 : 0].push_back(strides[axis]);
  }
  return {strided(sizes[0], steps[0]), strided(sizes[1], steps[1]), count(sizes[0]),
          count(sizes[1])};
}

}  // namespace stowage::kernels
