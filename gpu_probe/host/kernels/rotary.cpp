// Rotary position embedding (Su et al., 2021): pairs of features are turned by an angle that grows
// with the position. `halves` pairs feature i with i + features / 2, `pairs` neighbours.
#include "gpu_probe/host/kernels/kernels.hpp"
#include "gpu_probe/kernels/rows/strides.hpp"

namespace stowage::host {
namespace {

/// x is rows of `features`; the row's cosines and sines begin at `at`.
struct Rotation {
  Sizes rows, strides;
  std::int64_t features;
  bool halves;

  /// visit(first feature of a pair, its partner), for all pairs of a row.
  template <typename Visit>
  void each_pair(Visit visit) const {
    for (std::int64_t i = 0; i < features / 2; ++i) {
      halves ? visit(i, i + features / 2) : visit(2 * i, 2 * i + 1);
    }
  }
};

Rotation rotation(const KernelCall& call) {
  const auto &x = call.reads[0], &cos = call.reads[1], &sin = call.reads[2];
  require_same_shape("the result", call.writes[0], x);
  require_same_shape("sin", sin, cos);
  require(x.shape.size() >= 2 && x.shape.back() % 2 == 0 && !cos.shape.empty() &&
              cos.shape.back() == x.shape.back(),
          "cos {} and x {} do not belong together", shape_text(cos.shape), shape_text(x.shape));
  const std::string layout = text(call, "layout", "halves");
  require(layout == "halves" || layout == "pairs", "attribute 'layout' is '{}'", layout);
  Rotation r{.rows = x.shape,
             .strides = broadcast_strides(cos.shape, x.shape),
             .features = x.shape.back(),
             .halves = layout == "halves"};
  r.rows.pop_back();
  r.strides.pop_back();
  return r;
}

}  // namespace

void rotary_forward(const KernelCall& call) {
  const Rotation r = rotation(call);
  const float *cosines = floats(call.reads[1]), *sines = floats(call.reads[2]);
  const float* input = floats(call.reads[0]);
  float* result = mutable_floats(call.writes[0]);
  walk(r.rows, r.strides, [&](std::int64_t row, std::int64_t at) {
    const float *x = input + row * r.features, *cos = cosines + at, *sin = sines + at;
    float* y = result + row * r.features;
    r.each_pair([&](std::int64_t a, std::int64_t b) {
      const double first = x[a], second = x[b];
      y[a] = static_cast<float>(first * cos[a] - second * sin[a]);
      y[b] = static_cast<float>(second * cos[b] + first * sin[b]);
    });
  });
}

void rotary_backward(const KernelCall& call) {
  const Rotation r = rotation(call);
  const float *cosines = floats(call.reads[1]), *sines = floats(call.reads[2]);
  const float* gradient = floats(call.reads[0]);
  float* result = mutable_floats(call.writes[0]);
  walk(r.rows, r.strides, [&](std::int64_t row, std::int64_t at) {
    const float *dy = gradient + row * r.features, *cos = cosines + at, *sin = sines + at;
    float* dx = result + row * r.features;
    r.each_pair([&](std::int64_t a, std::int64_t b) {
      const double first = dy[a], second = dy[b];
      dx[a] = static_cast<float>(first * cos[a] + second * sin[b]);
      dx[b] = static_cast<float>(second * cos[b] - first * sin[a]);
    });
  });
}

}  // namespace stowage::host
