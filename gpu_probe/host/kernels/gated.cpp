// Activations with a second operand: PReLU's learnt slope, and gated linear units.
#include <algorithm>
#include <cmath>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

/// Element i of x has slope number i / area % slopes.
struct Slopes {
  std::int64_t slopes, area;
};

Slopes slopes_of(const TensorArgument& x, const TensorArgument& w) {
  const std::int64_t slopes = count(w.shape);
  const std::int64_t channels = x.shape.size() >= 2 ? x.shape[1] : 1;
  require(w.shape.size() == 1 && (slopes == 1 || slopes == channels),
          "weight {} is neither one number nor one for each of the {} channels",
          shape_text(w.shape), channels);
  return {slopes, count(x.shape, std::min<std::size_t>(2, x.shape.size()), x.shape.size())};
}

/// x is [outer, 2 half], the two halves being a and b.
struct Halves {
  std::int64_t outer, half;
  bool first_is_gate, silu;

  /// visit(a's offset, b's, y's), where `a` is what is gated, whichever stands first.
  template <typename Visit>
  void each(Visit visit) const {
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < half; ++i) {
        const std::int64_t first = o * 2 * half + i, second = first + half;
        visit(first_is_gate ? second : first, first_is_gate ? first : second, o * half + i);
      }
    }
  }
  [[nodiscard]] static double share(double x) { return 1 / (1 + std::exp(-x)); }
  [[nodiscard]] double gate(double x) const { return silu ? x * share(x) : share(x); }
  [[nodiscard]] double slope(double x) const {
    const double s = share(x);
    return silu ? s * (1 + x * (1 - s)) : s * (1 - s);
  }
};

Halves halves_of(const KernelCall& call, const TensorArgument& x, const TensorArgument& y) {
  require(!x.shape.empty(), "a scalar has no halves");
  const std::size_t axis = axis_of(call, "axis", x.shape.size(), -1);
  Sizes expected = x.shape;
  expected[axis] /= 2;
  require(x.shape[axis] % 2 == 0, "{} has no halves along axis {}", shape_text(x.shape), axis);
  require_shape("the gated half", y, expected);
  const std::string gate = text(call, "gate", "sigmoid");
  require(gate == "sigmoid" || gate == "silu", "attribute 'gate' is '{}'", gate);
  return {count(x.shape, 0, axis), count(y.shape, axis, y.shape.size()),
          boolean(call, "first_is_gate", false), gate == "silu"};
}

}  // namespace

void prelu_forward(const KernelCall& call) {
  require_same_shape("y", call.writes[0], call.reads[0]);
  const Slopes s = slopes_of(call.reads[0], call.reads[1]);
  const float *x = floats(call.reads[0]), *w = floats(call.reads[1]);
  float* y = mutable_floats(call.writes[0]);
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) {
    y[i] = x[i] > 0 ? x[i] : x[i] * w[i / s.area % s.slopes];
  }
}

void prelu_backward(const KernelCall& call) {
  const auto &x = call.reads[0], &w = call.reads[1], &dy = call.reads[2];
  require_same_shape("dy", dy, x);
  require_same_shape("dx", call.writes[0], x);
  require_same_shape("dw", call.writes[1], w);
  const Slopes s = slopes_of(x, w);
  const float *in = floats(x), *slope = floats(w), *gradient = floats(dy);
  float *dx = mutable_floats(call.writes[0]), *dw = mutable_floats(call.writes[1]);
  std::vector<double> sums(static_cast<std::size_t>(s.slopes), 0);
  for (std::int64_t i = 0; i < count(x.shape); ++i) {
    const std::int64_t channel = i / s.area % s.slopes;
    const float arrived = gradient[i];  // dx may lie in its place
    dx[i] = in[i] > 0 ? arrived : arrived * slope[channel];
    if (!(in[i] > 0)) sums[static_cast<std::size_t>(channel)] += double{arrived} * in[i];
  }
  for (std::size_t c = 0; c < sums.size(); ++c) dw[c] = static_cast<float>(sums[c]);
}

void glu_forward(const KernelCall& call) {
  const Halves h = halves_of(call, call.reads[0], call.writes[0]);
  const float* x = floats(call.reads[0]);
  float* y = mutable_floats(call.writes[0]);
  h.each([&](std::int64_t a, std::int64_t b, std::int64_t at) {
    y[at] = static_cast<float>(x[a] * h.gate(x[b]));
  });
}

void glu_backward(const KernelCall& call) {
  require_same_shape("dx", call.writes[0], call.reads[0]);
  const Halves h = halves_of(call, call.reads[0], call.reads[1]);
  const float *x = floats(call.reads[0]), *dy = floats(call.reads[1]);
  float* dx = mutable_floats(call.writes[0]);
  h.each([&](std::int64_t a, std::int64_t b, std::int64_t at) {
    dx[a] = static_cast<float>(dy[at] * h.gate(x[b]));
    dx[b] = static_cast<float>(double{dy[at]} * x[a] * h.slope(x[b]));
  });
}

}  // namespace stowage::host
