// Kernels that go element by element: activations, accumulation, scaling.
#include <cmath>
#include <numbers>

#include "gpu_probe/host/kernels/arguments.hpp"

namespace stowage::host {
namespace {

enum class Gelu { erf, tanh };

Gelu gelu_form(const KernelCall& call) {
  const std::string form = text(call, "approximate", "none");
  if (form == "none") return Gelu::erf;
  require(form == "tanh" || form == "tanh_composite", "attribute 'approximate' is '{}'", form);
  return Gelu::tanh;
}

constexpr double tanh_scale = 0.7978845608028654;  // sqrt(2 / pi)
constexpr double tanh_cube = 0.044715;

}  // namespace

void relu_forward(const KernelCall& call) {
  require_same_shape("y", call.writes[0], call.reads[0]);
  const float* x = floats(call.reads[0]);
  float* y = mutable_floats(call.writes[0]);
  // A NaN passes through, as in PyTorch: max(x, 0) would hide a poisoned input.
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) y[i] = x[i] <= 0 ? 0 : x[i];
}

void relu_backward(const KernelCall& call) {
  require_same_shape("dy", call.reads[1], call.reads[0]);
  require_same_shape("dx", call.writes[0], call.reads[0]);
  const float *y = floats(call.reads[0]), *dy = floats(call.reads[1]);
  float* dx = mutable_floats(call.writes[0]);
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) dx[i] = y[i] <= 0 ? 0 : dy[i];
}

void gelu_forward(const KernelCall& call) {
  require_same_shape("y", call.writes[0], call.reads[0]);
  const Gelu form = gelu_form(call);
  const float* x = floats(call.reads[0]);
  float* y = mutable_floats(call.writes[0]);
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) {
    const double v = x[i];
    const double share = form == Gelu::erf ? std::erf(v / std::numbers::sqrt2)
                                           : std::tanh(tanh_scale * (v + tanh_cube * v * v * v));
    y[i] = static_cast<float>(0.5 * v * (1 + share));
  }
}

void gelu_backward(const KernelCall& call) {
  require_same_shape("dy", call.reads[1], call.reads[0]);
  require_same_shape("dx", call.writes[0], call.reads[0]);
  const Gelu form = gelu_form(call);
  const float *x = floats(call.reads[0]), *dy = floats(call.reads[1]);
  float* dx = mutable_floats(call.writes[0]);
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) {
    const double v = x[i];
    double slope = 0;
    if (form == Gelu::erf) {
      const double density = std::exp(-0.5 * v * v) * tanh_scale / 2;
      slope = 0.5 * (1 + std::erf(v / std::numbers::sqrt2)) + v * density;
    } else {
      const double t = std::tanh(tanh_scale * (v + tanh_cube * v * v * v));
      slope = 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * tanh_scale * (1 + 3 * tanh_cube * v * v);
    }
    dx[i] = static_cast<float>(dy[i] * slope);
  }
}

void scale(const KernelCall& call) {
  require_same_shape("y", call.writes[0], call.reads[0]);
  const double factor = real(call, "factor", 1), offset = real(call, "offset", 0);
  const float* x = floats(call.reads[0]);
  float* y = mutable_floats(call.writes[0]);
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) {
    y[i] = static_cast<float>(factor * x[i] + offset);
  }
}

void accumulate(const KernelCall& call) {
  require_same_shape("b", call.reads[1], call.reads[0]);
  require_same_shape("the result", call.writes[0], call.reads[0]);
  const float *a = floats(call.reads[0]), *b = floats(call.reads[1]);
  float* result = mutable_floats(call.writes[0]);
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) result[i] = a[i] + b[i];
}

}  // namespace stowage::host
