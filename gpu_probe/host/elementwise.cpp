// Kernels that go element by element: activations, dropout, accumulation.
#include <cmath>
#include <numbers>

#include "gpu_probe/host/arguments.hpp"

namespace stowage::host {
namespace {

/// Splitmix64's output function: a good mix of a counter, so that a mask depends on the seed and
/// the element alone and is the same whenever the node runs again.
std::uint64_t mixed(std::uint64_t counter) {
  std::uint64_t z = counter * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

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
  require_arity(call, 1, 1, 1);
  require_same_shape("y", call.writes[0], call.reads[0]);
  const float* x = floats(call.reads[0]);
  float* y = mutable_floats(call.writes[0]);
  // A NaN passes through, as in PyTorch: max(x, 0) would hide a poisoned input.
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) y[i] = x[i] <= 0 ? 0 : x[i];
}

void relu_backward(const KernelCall& call) {
  require_arity(call, 2, 2, 1);
  require_same_shape("dy", call.reads[1], call.reads[0]);
  require_same_shape("dx", call.writes[0], call.reads[0]);
  const float *y = floats(call.reads[0]), *dy = floats(call.reads[1]);
  float* dx = mutable_floats(call.writes[0]);
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) dx[i] = y[i] <= 0 ? 0 : dy[i];
}

void gelu_forward(const KernelCall& call) {
  require_arity(call, 1, 1, 1);
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
  require_arity(call, 2, 2, 1);
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

void dropout_forward(const KernelCall& call) {
  require_arity(call, 1, 1, 2);
  require_same_shape("y", call.writes[0], call.reads[0]);
  require_same_shape("mask", call.writes[1], call.reads[0]);
  const double p = real(call, "p");
  require(p >= 0 && p < 1, "attribute 'p' is {}, not in [0, 1)", p);
  const std::uint64_t stream = mixed(static_cast<std::uint64_t>(integer(call, "seed", 0)) + 1);
  const auto threshold = static_cast<std::uint64_t>(p * 0x1p53);
  const auto scale = static_cast<float>(1 / (1 - p));
  const float* x = floats(call.reads[0]);
  float* y = mutable_floats(call.writes[0]);
  std::uint8_t* mask = mutable_mask_bytes(call.writes[1]);
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) {
    const std::uint64_t draw = mixed(stream + static_cast<std::uint64_t>(i)) >> 11;
    mask[i] = draw >= threshold ? 1 : 0;
    // A dropped NaN stays one: 0 * NaN, so that a poisoned input is seen.
    y[i] = x[i] * (mask[i] != 0 ? scale : 0);
  }
}

void dropout_backward(const KernelCall& call) {
  require_arity(call, 2, 2, 1);
  require_same_shape("mask", call.reads[1], call.reads[0]);
  require_same_shape("dx", call.writes[0], call.reads[0]);
  const auto scale = static_cast<float>(1 / (1 - real(call, "p")));
  const float* dy = floats(call.reads[0]);
  const std::uint8_t* mask = mask_bytes(call.reads[1]);
  float* dx = mutable_floats(call.writes[0]);
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) {
    dx[i] = dy[i] * scale * static_cast<float>(mask[i]);
  }
}

void accumulate(const KernelCall& call) {
  require_arity(call, 2, 2, 1);
  require_same_shape("b", call.reads[1], call.reads[0]);
  require_same_shape("the result", call.writes[0], call.reads[0]);
  const float *a = floats(call.reads[0]), *b = floats(call.reads[1]);
  float* result = mutable_floats(call.writes[0]);
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) result[i] = a[i] + b[i];
}

}  // namespace stowage::host
