// Dropout of elements, and of whole features: where the mask has ones as its last axes, one draw
// serves all elements along them.
#include "gpu_probe/kernels/bodies/dropout.hpp"

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/integers.hpp"
#include "gpu_probe/kernels/rows/mask_draw.hpp"

namespace stowage::kernels {
namespace {

body::Byte* bytes_of(const TensorArgument& mask) {
  return static_cast<body::Byte*>(any_integers(mask).data);
}

/// How many elements of x belong to one element of the mask.
std::int64_t elements_per_draw(const TensorArgument& x, const TensorArgument& mask) {
  const std::size_t rank = x.shape.size();
  bool fits = mask.shape.size() == rank;
  std::size_t leading = rank;
  while (fits && leading > 0 && mask.shape[leading - 1] == 1) --leading;
  for (std::size_t axis = 0; fits && axis < leading; ++axis) {
    fits = mask.shape[axis] == x.shape[axis];
  }
  require(fits, "mask {} is not {} with trailing ones", shape_text(mask.shape),
          shape_text(x.shape));
  return count(x.shape, leading, rank);
}

/// y = x (or dx = dy) where the mask keeps the element.
Launch masked(const KernelCall& call, const TensorArgument& mask, std::int64_t together,
              Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const float scale = mask_scale(real(call, "p"));
  return in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::Masked<T, Real>{elements<T>(x), elements<T>(y), bytes_of(mask), together, scale},
        count(x.shape));
  });
}

Launches drop(const KernelCall& call, std::int64_t together, Arithmetic arithmetic) {
  const auto& mask = call.writes[1];
  const body::MaskDraw draw = mask_draw(real(call, "p"), integer(call, "seed", 0));
  return {each_index(body::DrawMask{bytes_of(mask), draw}, count(mask.shape)),
          masked(call, mask, together, arithmetic)};
}

}  // namespace

Launches dropout_forward(const KernelCall& call, Arithmetic arithmetic) {
  require_same_shape("y", call.writes[0], call.reads[0]);
  require_same_shape("mask", call.writes[1], call.reads[0]);
  return drop(call, 1, arithmetic);
}

Launches dropout_backward(const KernelCall& call, Arithmetic arithmetic) {
  require_same_shape("mask", call.reads[1], call.reads[0]);
  require_same_shape("dx", call.writes[0], call.reads[0]);
  return {masked(call, call.reads[1], 1, arithmetic)};
}

Launches feature_dropout_forward(const KernelCall& call, Arithmetic arithmetic) {
  require_same_shape("y", call.writes[0], call.reads[0]);
  return drop(call, elements_per_draw(call.reads[0], call.writes[1]), arithmetic);
}

Launches feature_dropout_backward(const KernelCall& call, Arithmetic arithmetic) {
  require_same_shape("dx", call.writes[0], call.reads[0]);
  return {masked(call, call.reads[1], elements_per_draw(call.reads[0], call.reads[1]), arithmetic)};
}

}  // namespace stowage::kernels
