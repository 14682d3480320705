// Functions of one number. Their derivatives are PyTorch's, also at the kinks.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"

namespace stowage::body {

enum class Function : Byte {
  relu,
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
  gelu_erf,
  gelu_tanh,
  rsqrt,
  reciprocal,
  abs,
  sin,
  cos,
  erf,
  log1p,
  expm1,
  selu,
  celu,
  log_sigmoid,
  sign,
  floor,
  ceil,
  round,
  trunc,
};

/// A function with its settings, whose meaning depends on the function: the slope of leaky_relu,
/// the alpha of elu and celu, the beta and threshold of softplus, the exponent of power, the bounds
/// of clamp.
struct Unary {
  Function function;
  double first, second;

  // f(x). Comparisons with bounds let NaN through, as in PyTorch: a poisoned input is noticed.
  template <class Real>
  [[nodiscard]] STOWAGE_BODY Real value(Real x) const {
    const Real a = static_cast<Real>(first), b = static_cast<Real>(second);
    switch (function) {
      case Function::relu:
        return x <= 0 ? 0 : x;
      case Function::relu6:
        return least(most(x, Real(0)), Real(6));
      case Function::leaky_relu:
        return x > 0 ? x : a * x;
      case Function::elu:
        return x > 0 ? x : a * body::expm1(x);
      case Function::silu:
        return x * body::sigmoid(x);
      case Function::mish:
        return x * body::tanh(body::log1p(body::exp(x)));
      case Function::hardswish:
        return x * hard_share(x);
      case Function::hardsigmoid:
        return hard_share(x);
      case Function::sigmoid:
        return body::sigmoid(x);
      case Function::tanh:
        return body::tanh(x);
      case Function::softplus:
        return a * x > b ? x : body::log1p(body::exp(a * x)) / a;
      case Function::exp:
        return body::exp(x);
      case Function::log:
        return body::log(x);
      case Function::sqrt:
        return body::sqrt(x);
      case Function::power:
        return body::pow(x, a);
      case Function::clamp:
        return least(most(x, a), b);
      case Function::gelu_erf:
        return Real(0.5) * x * (1 + body::erf(x / sqrt_of_2<Real>()));
      case Function::gelu_tanh:
        return Real(0.5) * x * (1 + gelu_share(x));
      case Function::rsqrt:
        return 1 / body::sqrt(x);
      case Function::reciprocal:
        return 1 / x;
      case Function::abs:
        return body::fabs(x);
      case Function::sin:
        return body::sin(x);
      case Function::cos:
        return body::cos(x);
      case Function::erf:
        return body::erf(x);
      case Function::log1p:
        return body::log1p(x);
      case Function::expm1:
        return body::expm1(x);
      case Function::selu:
        return selu_scale<Real>() * (x > 0 ? x : selu_alpha<Real>() * body::expm1(x));
      case Function::celu:
        return x > 0 ? x : a * body::expm1(x / a);
      case Function::log_sigmoid:
        return (x < 0 ? x : x - x) - body::log1p(body::exp(-body::fabs(x)));
      case Function::sign:
        return x > 0 ? 1 : x < 0 ? -1 : x;
      case Function::floor:
        return body::floor(x);
      case Function::ceil:
        return body::ceil(x);
      case Function::round:
        return body::rint(x);  // ties to even
      case Function::trunc:
        return body::trunc(x);
    }
    return 0;
  }

  /// The derivative, where `s` is the value that forward keeps: the result of relu, relu6, sigmoid,
  /// tanh, exp, expm1, sqrt, rsqrt and reciprocal; the argument of the others.
  template <class Real>
  [[nodiscard]] STOWAGE_BODY Real slope(Real s) const {
    const Real a = static_cast<Real>(first), b = static_cast<Real>(second);
    switch (function) {
      case Function::relu:
        return s <= 0 ? 0 : 1;
      case Function::relu6:
        return s <= 0 || s >= 6 ? 0 : 1;
      case Function::leaky_relu:
        return s > 0 ? 1 : a;
      case Function::elu:
        return s > 0 ? 1 : a * body::exp(s);
      case Function::silu:
        return body::sigmoid(s) * (1 + s * (1 - body::sigmoid(s)));
      case Function::mish: {
        const Real t = body::tanh(body::log1p(body::exp(s)));
        return t + s * body::sigmoid(s) * (1 - t * t);
      }
      case Function::hardswish:
        return s <= -3 ? 0 : s < 3 ? s / 3 + Real(0.5) : 1;
      case Function::hardsigmoid:
        return s <= -3 || s >= 3 ? 0 : Real(1) / 6;
      case Function::sigmoid:
        return s * (1 - s);
      case Function::tanh:
        return 1 - s * s;
      case Function::softplus:
        return a * s > b ? 1 : body::sigmoid(a * s);
      case Function::exp:
        return s;
      case Function::log:
        return 1 / s;
      case Function::sqrt:
        return Real(0.5) / s;
      case Function::power:
        return a == 0 ? 0 : a * body::pow(s, a - 1);
      case Function::clamp:
        return s <= a || s >= b ? 0 : 1;
      case Function::gelu_erf: {
        const Real density = body::exp(Real(-0.5) * s * s) * tanh_scale<Real>() / 2;
        return Real(0.5) * (1 + body::erf(s / sqrt_of_2<Real>())) + s * density;
      }
      case Function::gelu_tanh: {
        const Real t = gelu_share(s);
        return Real(0.5) * (1 + t) + Real(0.5) * s * (1 - t * t) * tanh_scale<Real>() *
                                         (1 + 3 * tanh_cube<Real>() * s * s);
      }
      case Function::rsqrt:
        return Real(-0.5) * s * s * s;
      case Function::reciprocal:
        return -s * s;
      case Function::abs:
        return s > 0 ? 1 : s < 0 ? -1 : s;
      case Function::sin:
        return body::cos(s);
      case Function::cos:
        return -body::sin(s);
      case Function::erf:
        return static_cast<Real>(1.1283791670955126) * body::exp(-s * s);  // 2 / sqrt(pi)
      case Function::log1p:
        return 1 / (s + 1);
      case Function::expm1:
        return s + 1;
      case Function::selu:
        return selu_scale<Real>() * (s > 0 ? 1 : selu_alpha<Real>() * body::exp(s));
      case Function::celu:
        return s > 0 ? 1 : body::exp(s / a);
      case Function::log_sigmoid:
        return body::sigmoid(-s);
      case Function::sign:
      case Function::floor:
      case Function::ceil:
      case Function::round:
      case Function::trunc:
        return 0;
    }
    return 0;
  }

 private:
  template <class Real>
  STOWAGE_BODY static Real hard_share(Real x) {
    return least(most(x + 3, Real(0)), Real(6)) / 6;
  }
  template <class Real>
  STOWAGE_BODY static Real sqrt_of_2() {
    return static_cast<Real>(1.4142135623730950488);
  }
  template <class Real>
  STOWAGE_BODY static Real tanh_scale() {
    return static_cast<Real>(0.7978845608028654);  // sqrt(2 / pi)
  }
  template <class Real>
  STOWAGE_BODY static Real tanh_cube() {
    return static_cast<Real>(0.044715);
  }
  // Constants of Klambauer et al., Self-Normalizing Neural Networks, 2017, with PyTorch's digits.
  template <class Real>
  STOWAGE_BODY static Real selu_alpha() {
    return static_cast<Real>(1.6732632423543772848170429916717);
  }
  template <class Real>
  STOWAGE_BODY static Real selu_scale() {
    return static_cast<Real>(1.0507009873554804934193349852946);
  }
  template <class Real>
  STOWAGE_BODY static Real gelu_share(Real x) {
    return body::tanh(tanh_scale<Real>() * (x + tanh_cube<Real>() * x * x * x));
  }
};

/// y = f(x); y may be x.
template <class T, class Real>
struct UnaryForward {
  const T* x;
  T* y;
  Unary f;
  STOWAGE_BODY void operator()(Index i) const { store(y, i, f.value(load<Real>(x, i))); }
};

/// dx = f'(s) dy; dx may be dy.
template <class T, class Real>
struct UnaryBackward {
  const T *s, *dy;
  T* dx;
  Unary f;
  STOWAGE_BODY void operator()(Index i) const {
    store(dx, i, f.slope(load<Real>(s, i)) * load<Real>(dy, i));
  }
};

/// dx = f'(s) dy as in PyTorch: where the slope is 0, dx is 0 for every dy, even for NaN.
template <class T>
struct ReluBackward {
  const T *y, *dy;
  T* dx;
  STOWAGE_BODY void operator()(Index i) const {
    if (widened(y[i]) <= 0) {
      store(dx, i, 0.0F);
    } else {
      dx[i] = dy[i];
    }
  }
};

}  // namespace stowage::body
