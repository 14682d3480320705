// Softmax and its logarithm along an axis. With `causal` (softmax only), row q of the last two axes
// covers only the columns k <= q (PyTorch's is_causal, aligned to the upper left corner).
#include "gpu_probe/kernels/bodies/softmax.hpp"

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/lines.hpp"

namespace stowage::kernels {
namespace {

struct AxisLines {
  body::Lines lines;
  std::int64_t count;
  std::int64_t queries;  ///< 0: not causal
};

AxisLines axis_lines(const KernelCall& call) {
  const Sizes& shape = call.reads[0].shape;
  const std::size_t rank = shape.size();
  require(rank >= 1, "a scalar has no axis");
  const std::size_t axis = axis_of(call, "axis", rank, -1);
  const std::int64_t inner = kernels::count(shape, axis + 1, rank);
  AxisLines l{
      .lines = {shape[axis], inner}, .count = kernels::count(shape, 0, axis) * inner, .queries = 0};
  if (boolean(call, "causal", false)) {
    require(rank >= 2 && axis == rank - 1, "a causal softmax of {} is along the last of two axes",
            shape_text(shape));
    l.queries = shape[rank - 2];
  }
  return l;
}

/// For kernels whose tensors all have one shape. make<T, Real>(lines) returns the body.
template <class Make>
Launches along_axis(const KernelCall& call, Arithmetic arithmetic, Make make) {
  const AxisLines l = axis_lines(call);
  return {in_formats(call.reads[0].type, arithmetic, [&]<class T, class Real>() {
    return each_line(make.template operator()<T, Real>(l), l.lines, l.count);
  })};
}

}  // namespace

Launches softmax_forward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  require_same_shape("y", y, x);
  return along_axis(call, arithmetic, [&]<class T, class Real>(const AxisLines& l) {
    return body::SoftmaxForward<T, Real>{elements<T>(x), elements<T>(y), l.lines, l.queries};
  });
}

Launches softmax_backward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &y = call.reads[0], &dy = call.reads[1], &dx = call.writes[0];
  require_same_shape("dy", dy, y);
  require_same_shape("dx", dx, y);
  return along_axis(call, arithmetic, [&]<class T, class Real>(const AxisLines& l) {
    return body::SoftmaxBackward<T, Real>{elements<T>(y), elements<T>(dy), elements<T>(dx),
                                          l.lines};
  });
}

Launches log_softmax_forward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  require_same_shape("y", y, x);
  return along_axis(call, arithmetic, [&]<class T, class Real>(const AxisLines& l) {
    return body::LogSoftmaxForward<T, Real>{elements<T>(x), elements<T>(y), l.lines};
  });
}

Launches log_softmax_backward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &y = call.reads[0], &dy = call.reads[1], &dx = call.writes[0];
  require_same_shape("dy", dy, y);
  require_same_shape("dx", dx, y);
  return along_axis(call, arithmetic, [&]<class T, class Real>(const AxisLines& l) {
    return body::LogSoftmaxBackward<T, Real>{elements<T>(y), elements<T>(dy), elements<T>(dx),
                                             l.lines};
  });
}

}  // namespace stowage::kernels
