// Dropout of elements, and of whole features: one draw for all that a mask of ones on the trailing
// axes stands for.
#include "gpu_probe/host/kernels/mask_draw.hpp"

namespace stowage::host {
namespace {

MaskDraw draw_of(const KernelCall& call) {
  return MaskDraw(real(call, "p"), integer(call, "seed", 0));
}

/// How many elements of x one element of the mask stands for.
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

void drop(const KernelCall& call, std::int64_t elements) {
  const MaskDraw draw = draw_of(call);
  const float* x = floats(call.reads[0]);
  float* y = mutable_floats(call.writes[0]);
  std::uint8_t* mask = mutable_mask_bytes(call.writes[1]);
  for (std::int64_t i = 0; i < count(call.writes[1].shape); ++i) {
    mask[i] = draw.keeps(i) ? 1 : 0;
    // A dropped NaN stays one: 0 * NaN, so that a poisoned input is seen.
    const float factor = mask[i] != 0 ? draw.scale() : 0;
    for (std::int64_t j = i * elements; j < (i + 1) * elements; ++j) y[j] = x[j] * factor;
  }
}

void drop_gradient(const KernelCall& call, std::int64_t elements) {
  const float scale = draw_of(call).scale();
  const float* dy = floats(call.reads[0]);
  const std::uint8_t* mask = mask_bytes(call.reads[1]);
  float* dx = mutable_floats(call.writes[0]);
  for (std::int64_t i = 0; i < count(call.reads[1].shape); ++i) {
    const float factor = scale * static_cast<float>(mask[i]);
    for (std::int64_t j = i * elements; j < (i + 1) * elements; ++j) dx[j] = dy[j] * factor;
  }
}

}  // namespace

void dropout_forward(const KernelCall& call) {
  require_same_shape("y", call.writes[0], call.reads[0]);
  require_same_shape("mask", call.writes[1], call.reads[0]);
  drop(call, 1);
}

void dropout_backward(const KernelCall& call) {
  require_same_shape("mask", call.reads[1], call.reads[0]);
  require_same_shape("dx", call.writes[0], call.reads[0]);
  drop_gradient(call, 1);
}

void feature_dropout_forward(const KernelCall& call) {
  require_same_shape("y", call.writes[0], call.reads[0]);
  drop(call, elements_per_draw(call.reads[0], call.writes[1]));
}

void feature_dropout_backward(const KernelCall& call) {
  require_same_shape("dx", call.writes[0], call.reads[0]);
  drop_gradient(call, elements_per_draw(call.reads[0], call.reads[1]));
}

}  // namespace stowage::host
