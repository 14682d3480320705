// Activations with a second operand.
#include "gpu_probe/kernels/bodies/gated.hpp"

#include <algorithm>

#include "gpu_probe/kernels/rows/formats.hpp"

namespace stowage::kernels {
namespace {

body::Slopes slopes_of(const TensorArgument& x, const TensorArgument& w) {
  const std::int64_t slopes = count(w.shape);
  const std::int64_t channels = x.shape.size() >= 2 ? x.shape[1] : 1;
  require(w.shape.size() == 1 && (slopes == 1 || slopes == channels),
          "weight {} is neither one number nor one for each of the {} channels",
          shape_text(w.shape), channels);
  return {any_floats(w), slopes,
          count(x.shape, std::min<std::size_t>(2, x.shape.size()), x.shape.size())};
}

body::Halves halves_of(const KernelCall& call, const TensorArgument& x, const TensorArgument& y) {
  require(!x.shape.empty(), "a scalar has no halves");
  const std::size_t axis = axis_of(call, "axis", x.shape.size(), -1);
  Sizes expected = x.shape;
  expected[axis] /= 2;
  require(x.shape[axis] % 2 == 0, "{} has no halves along axis {}", shape_text(x.shape), axis);
  require_shape("the gated half", y, expected);
  const std::string gate = text(call, "gate", "sigmoid");
  require(gate == "sigmoid" || gate == "silu", "attribute 'gate' is '{}'", gate);
  return {count(y.shape, axis, y.shape.size()), boolean(call, "first_is_gate", false),
          gate == "silu"};
}

}  // namespace

Launches prelu_forward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  require_same_shape("y", y, x);
  const body::Slopes slopes = slopes_of(x, call.reads[1]);
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_index(body::PreluForward<T, Real>{elements<T>(x), elements<T>(y), slopes},
                      count(x.shape));
  })};
}

Launches prelu_backward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &w = call.reads[1], &dy = call.reads[2];
  const auto &dx = call.writes[0], &dw = call.writes[1];
  require_same_shape("dy", dy, x);
  require_same_shape("dx", dx, x);
  require_same_shape("dw", dw, w);
  const body::Slopes slopes = slopes_of(x, w);
  const std::int64_t total = count(x.shape);
  const body::Planes planes = slopes.count == 1
                                  ? body::Planes{1, 1, total}
                                  : body::Planes{x.shape[0], slopes.count, slopes.area};
  Launches launches;
  in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    launches.push_back(each_group(
        body::PreluSlopes<T, Real>{elements<T>(x), elements<T>(dy), any_floats(dw), planes},
        slopes.count, threads_for(planes.of_channel())));
    launches.push_back(each_index(
        body::PreluBackward<T, Real>{elements<T>(x), elements<T>(dy), elements<T>(dx), slopes},
        total));
  });
  return launches;
}

Launches glu_forward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const body::Halves halves = halves_of(call, x, y);
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_index(body::GluForward<T, Real>{elements<T>(x), elements<T>(y), halves},
                      count(y.shape));
  })};
}

Launches glu_backward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &dy = call.reads[1], &dx = call.writes[0];
  require_same_shape("dx", dx, x);
  const body::Halves halves = halves_of(call, x, dy);
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::GluBackward<T, Real>{elements<T>(x), elements<T>(dy), elements<T>(dx), halves},
        count(dy.shape));
  })};
}

}  // namespace stowage::kernels
