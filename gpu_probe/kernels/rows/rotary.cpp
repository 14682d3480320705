// Rotary position embedding and its table.
#include "gpu_probe/kernels/bodies/rotary.hpp"

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/strided.hpp"
#include "gpu_probe/kernels/rows/strides.hpp"

namespace stowage::kernels {
namespace {

body::RotaryPairs pairs_of(const KernelCall& call) {
  const auto &x = call.reads[0], &cos = call.reads[1], &sin = call.reads[2];
  require_same_shape("the result", call.writes[0], x);
  require_same_shape("sin", sin, cos);
  require(x.shape.size() >= 2 && x.shape.back() % 2 == 0 && !cos.shape.empty() &&
              cos.shape.back() == x.shape.back(),
          "cos {} and x {} do not belong together", shape_text(cos.shape), shape_text(x.shape));
  const std::string layout = text(call, "layout", "halves");
  require(layout == "halves" || layout == "pairs", "attribute 'layout' is '{}'", layout);
  Sizes rows = x.shape, strides = broadcast_strides(cos.shape, x.shape);
  rows.pop_back();
  strides.pop_back();
  return {x.shape.back() / 2, layout == "halves", strided(rows, strides)};
}

template <bool backward>
Launches rotary(const KernelCall& call, Arithmetic arithmetic) {
  const body::RotaryPairs pairs = pairs_of(call);
  const auto &x = call.reads[0], &y = call.writes[0];
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::Rotary<T, Real, backward>{elements<T>(x), elements<T>(y), any_floats(call.reads[1]),
                                        any_floats(call.reads[2]), pairs},
        count(x.shape) / 2);
  })};
}

}  // namespace

Launches rotary_forward(const KernelCall& call, Arithmetic arithmetic) {
  return rotary<false>(call, arithmetic);
}
Launches rotary_backward(const KernelCall& call, Arithmetic arithmetic) {
  return rotary<true>(call, arithmetic);
}

Launches rotary_table(const KernelCall& call, Arithmetic) {
  const auto &cos = call.writes[0], &sin = call.writes[1];
  require_same_shape("sin", sin, cos);
  require(cos.shape.size() == 2 && cos.shape[1] % 2 == 0,
          "a table is [positions, features], not {}", shape_text(cos.shape));
  return {each_index(
      body::RotaryTable{any_floats(cos), any_floats(sin), cos.shape[1], real(call, "base", 10000)},
      count(cos.shape))};
}

}  // namespace stowage::kernels
