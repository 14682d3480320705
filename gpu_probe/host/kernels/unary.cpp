// Functions of one number, in double; their derivatives are PyTorch's at the kinks too.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "gpu_probe/host/kernels/arguments.hpp"

namespace stowage::host {
namespace {

enum class Function {
  relu6,
  leaky_relu,
  elu,
  silu,
  mish,
  hardswish,
  hardsigmoid,
  sigmoid,
  tanh,
  softplus,
  exp,
  log,
  sqrt,
  power,
  clamp,
};
constexpr std::array<std::string_view, 15> names{
    "relu6", "leaky_relu", "elu", "silu", "mish", "hardswish", "hardsigmoid", "sigmoid",
    "tanh",  "softplus",   "exp", "log",  "sqrt", "power",     "clamp"};

Function function_of(const KernelCall& call) {
  const std::string name = text(call, "function", "");
  const auto found = std::find(names.begin(), names.end(), name);
  require(found != names.end(), "attribute 'function' is '{}'", name);
  return static_cast<Function>(found - names.begin());
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Bounds {
  double least, most;
};

Bounds bounds_of(const KernelCall& call) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return {real(call, "minimum", -infinity), real(call, "maximum", infinity)};
}

/// y = value(x); y may be x.
template <typename Value>
void map(const KernelCall& call, Value value) {
  const float* x = floats(call.reads[0]);
  float* y = mutable_floats(call.writes[0]);
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i)
    y[i] = static_cast<float>(value(x[i]));
}

/// dx = slope(s) dy.
template <typename Slope>
void chain(const KernelCall& call, Slope slope) {
  const float *s = floats(call.reads[0]), *dy = floats(call.reads[1]);
  float* dx = mutable_floats(call.writes[0]);
  for (std::int64_t i = 0; i < count(call.reads[0].shape); ++i) {
    dx[i] = static_cast<float>(slope(s[i]) * dy[i]);
  }
}

double hard_share(double x) { return std::min(std::max(x + 3, 0.0), 6.0) / 6; }

double hardswish_slope(double x) {
  if (x <= -3) return 0;
  return x < 3 ? x / 3 + 0.5 : 1;
}

double mish_slope(double x) {
  const double t = std::tanh(std::log1p(std::exp(x)));
  return t + x * sigmoid(x) * (1 - t * t);
}

}  // namespace

// Bounds are compared such that a NaN passes through, as in PyTorch: a poisoned input shows.
void unary_forward(const KernelCall& call) {
  require_same_shape("y", call.writes[0], call.reads[0]);
  switch (function_of(call)) {
    case Function::relu6:
      return map(call, [](double x) { return std::min(std::max(x, 0.0), 6.0); });
    case Function::leaky_relu:
      return map(
          call, [slope = real(call, "negative_slope")](double x) { return x > 0 ? x : slope * x; });
    case Function::elu:
      return map(call, [alpha = real(call, "alpha")](double x) {
        return x > 0 ? x : alpha * std::expm1(x);
      });
    case Function::silu:
      return map(call, [](double x) { return x * sigmoid(x); });
    case Function::mish:
      return map(call, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); });
    case Function::hardswish:
      return map(call, [](double x) { return x * hard_share(x); });
    case Function::hardsigmoid:
      return map(call, hard_share);
    case Function::sigmoid:
      return map(call, sigmoid);
    case Function::tanh:
      return map(call, [](double x) { return std::tanh(x); });
    case Function::softplus:
      return map(call, [beta = real(call, "beta"), threshold = real(call, "threshold")](double x) {
        return beta * x > threshold ? x : std::log1p(std::exp(beta * x)) / beta;
      });
    case Function::exp:
      return map(call, [](double x) { return std::exp(x); });
    case Function::log:
      return map(call, [](double x) { return std::log(x); });
    case Function::sqrt:
      return map(call, [](double x) { return std::sqrt(x); });
    case Function::power:
      return map(call,
                 [exponent = real(call, "exponent")](double x) { return std::pow(x, exponent); });
    case Function::clamp:
      return map(
          call, [b = bounds_of(call)](double x) { return std::min(std::max(x, b.least), b.most); });
  }
}

void unary_backward(const KernelCall& call) {
  require_same_shape("dy", call.reads[1], call.reads[0]);
  require_same_shape("dx", call.writes[0], call.reads[0]);
  switch (function_of(call)) {
    case Function::relu6:
      return chain(call, [](double x) { return x <= 0 || x >= 6 ? 0 : 1; });
    case Function::leaky_relu:
      return chain(call,
                   [slope = real(call, "negative_slope")](double x) { return x > 0 ? 1 : slope; });
    case Function::elu:
      return chain(call, [alpha = real(call, "alpha")](double x) {
        return x > 0 ? 1 : alpha * std::exp(x);
      });
    case Function::silu:
      return chain(call, [](double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); });
    case Function::mish:
      return chain(call, mish_slope);
    case Function::hardswish:
      return chain(call, hardswish_slope);
    case Function::hardsigmoid:
      return chain(call, [](double x) { return x <= -3 || x >= 3 ? 0 : 1.0 / 6; });
    case Function::sigmoid:
      return chain(call, [](double y) { return y * (1 - y); });
    case Function::tanh:
      return chain(call, [](double y) { return 1 - y * y; });
    case Function::softplus:
      return chain(call, [beta = real(call, "beta"), threshold = real(call, "threshold")](
                             double x) { return beta * x > threshold ? 1 : sigmoid(beta * x); });
    case Function::exp:
      return chain(call, [](double y) { return y; });
    case Function::log:
      return chain(call, [](double x) { return 1 / x; });
    case Function::sqrt:
      return chain(call, [](double y) { return 0.5 / y; });
    case Function::power:
      return chain(call, [exponent = real(call, "exponent")](double x) {
        return exponent == 0 ? 0 : exponent * std::pow(x, exponent - 1);
      });
    case Function::clamp:
      return chain(call,
                   [b = bounds_of(call)](double x) { return x <= b.least || x >= b.most ? 0 : 1; });
  }
}

}  // namespace stowage::host
