#include "gpu_probe/cuda/convolution_call.hpp"

#include <algorithm>

#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage {
namespace {

using Direction = ConvolutionCall::Direction;
using kernels::require;
using kernels::shape_text;
using kernels::Sizes;

/// The convolution's own three tensors among the arguments of the call, whichever of them the
/// kernel computes.
struct Parts {
  Direction direction;
  const TensorArgument *x, *w, *y;
};

Parts parts_of(const KernelCall& call) {
  const auto read = [&](std::size_t i) { return &call.reads[i]; };
  const TensorArgument* const written = call.writes.data();
  switch (call.kernel) {
    case Kernel::convolution_forward:
      return {Direction::forward, read(0), read(1), written};
    case Kernel::convolution_backward_data:  // dy, w -> dx
      return {Direction::backward_data, written, read(1), read(0)};
    case Kernel::convolution_backward_filter:  // x, dy -> dw
      return {Direction::backward_filter, read(0), written, read(1)};
    case Kernel::transposed_convolution_forward:  // x, w -> y
      return {Direction::backward_data, written, read(1), read(0)};
    case Kernel::transposed_convolution_backward_data:  // dy, w -> dx
      return {Direction::forward, read(0), read(1), written};
    default:  // transposed_convolution_backward_filter: x, dy -> dw
      return {Direction::backward_filter, read(1), written, read(0)};
  }
}

Sizes with_height(Sizes shape) {
  if (shape.size() == 3) shape.insert(shape.begin() + 2, 1);
  return shape;
}

void check_shapes(const Parts& parts, const ConvolutionQuery& query, const Sizes& unused) {
  require(parts.w->type == parts.x->type && parts.y->type == parts.x->type,
          "input {}, weight {} and output {} are not of one format", to_string(parts.x->type),
          to_string(parts.w->type), to_string(parts.y->type));
  const Sizes &x = parts.x->shape, &w = parts.w->shape, &y = parts.y->shape;
  require(x.size() >= 3 && x.size() <= 5 && w.size() == x.size() && y.size() == x.size(),
          "input {}, weight {} and output {} are of no convolution", shape_text(x), shape_text(w),
          shape_text(y));
  require(query.groups >= 1 && x[1] == w[1] * query.groups && y[1] == w[0] && x[0] == y[0] &&
              w[0] % query.groups == 0,
          "input {}, weight {} and output {} do not belong together with {} groups", shape_text(x),
          shape_text(w), shape_text(y), query.groups);
  const std::size_t flat = query.stride.size() - (x.size() - 2);
  for (std::size_t i = 0; i + 2 < x.size(); ++i) {
    const std::int64_t reach = (w[i + 2] - 1) * query.dilation[i + flat] + 1;
    const std::int64_t padded = x[i + 2] + 2 * query.padding[i + flat] - unused[i];
    const std::int64_t size = (padded - reach) / query.stride[i + flat] + 1;
    require(size == y[i + 2], "input {} and weight {} give {} instead of {} along axis {}",
            shape_text(x), shape_text(w), size, y[i + 2], i + 2);
  }
}

}  // namespace

bool is_convolution(Kernel kernel) {
  switch (kernel) {
    case Kernel::convolution_forward:
    case Kernel::convolution_backward_data:
    case Kernel::convolution_backward_filter:
    case Kernel::transposed_convolution_forward:
    case Kernel::transposed_convolution_backward_data:
    case Kernel::transposed_convolution_backward_filter:
      return true;
    default:
      return false;
  }
}

CalledConvolution called_convolution(const KernelCall& call) {
  const Parts parts = parts_of(call);
  require(parts.x->shape.size() >= 3, "an input of {} has no spatial axis",
          shape_text(parts.x->shape));
  const std::size_t spatial = parts.x->shape.size() - 2;
  CalledConvolution called{
      .query = {.direction = parts.direction,
                .type = parts.x->type,
                .x = with_height(parts.x->shape),
                .w = with_height(parts.w->shape),
                .y = with_height(parts.y->shape),
                .stride = kernels::list(call, "stride", spatial, 1),
                .padding = kernels::list(call, "padding", spatial, 0),
                .dilation = kernels::list(call, "dilation", spatial, 1),
                .groups = kernels::integer(call, "groups", 1),
                .settings = {.tf32 = call.tf32 || parts.x->type != DataType::float32}},
      .x = parts.x->data,
      .w = parts.w->data,
      .y = parts.y->data};
  if (spatial == 1) {
    called.query.stride.insert(called.query.stride.begin(), 1);
    called.query.padding.insert(called.query.padding.begin(), 0);
    called.query.dilation.insert(called.query.dilation.begin(), 1);
  }
  check_shapes(parts, called.query, kernels::list(call, "output_padding", spatial, 0));
  if (call.reads.size() == 3) {
    called.bias = &call.reads[2];
    kernels::require_shape("bias", *called.bias, {call.writes[0].shape[1]});
  }
  return called;
}

}  // namespace stowage
