// Losses that compare a tensor with a target of the same shape, element by element.
//
// A comparison has two functions: `term` is what an element adds to the loss, `slope` its
// derivative by x.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/group.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"

namespace stowage::body {

struct SquaredError {
  template <class Real>
  STOWAGE_BODY static Real term(Real x, Real t) {
    return (x - t) * (x - t);
  }
  template <class Real>
  STOWAGE_BODY static Real slope(Real x, Real t) {
    return 2 * (x - t);
  }
};

struct AbsoluteError {
  template <class Real>
  STOWAGE_BODY static Real term(Real x, Real t) {
    return body::fabs(x - t);
  }
  template <class Real>
  STOWAGE_BODY static Real slope(Real x, Real t) {
    if (x == t) return 0;
    return (x > t ? Real(1) : Real(-1)) + 0 * (x - t);  // NaN stays NaN
  }
};

/// Binary cross-entropy of logits.
struct LogitEntropy {
  template <class Real>
  STOWAGE_BODY static Real term(Real x, Real t) {
    return most(x, Real(0)) - x * t + body::log1p(body::exp(-body::fabs(x)));
  }
  template <class Real>
  STOWAGE_BODY static Real slope(Real x, Real t) {
    return body::sigmoid(x) - t;
  }
};

/// Binary cross-entropy of probabilities, with PyTorch's bounds of the logarithm.
struct ProbabilityEntropy {
  template <class Real>
  STOWAGE_BODY static Real term(Real x, Real t) {
    return -t * bounded_log(x) - (1 - t) * bounded_log(1 - x);
  }
  template <class Real>
  STOWAGE_BODY static Real slope(Real x, Real t) {
    return (x - t) / most((1 - x) * x, static_cast<Real>(1e-12));
  }

 private:
  template <class Real>
  STOWAGE_BODY static Real bounded_log(Real p) {
    return most(body::log(p), Real(-100));
  }
};

/// The Kullback-Leibler divergence of log-probabilities x from probabilities t.
struct Divergence {
  template <class Real>
  STOWAGE_BODY static Real term(Real x, Real t) {
    return t > 0 ? t * (body::log(t) - x) : -t * x;
  }
  template <class Real>
  STOWAGE_BODY static Real slope(Real, Real t) {
    return -t;
  }
};

/// loss = the sum of the terms / divisor, computed by one group.
template <class T, class Real, class Comparison>
struct PointwiseLoss {
  const T *x, *target;
  Floats loss;
  Index elements;
  Real divisor;

  STOWAGE_BODY void operator()(Index, const Group& group) const {
    Real sum = 0;
    for (Index i = group.rank(); i < elements; i += group.size()) {
      sum += Comparison::term(load<Real>(x, i), load<Real>(target, i));
    }
    sum = sum_of(group, sum);
    if (group.rank() == 0) loss.set(0, sum / divisor);
  }
};

/// dx = scale * slope; dx may be x.
template <class T, class Real, class Comparison>
struct PointwiseGradient {
  const T *x, *target;
  T* dx;
  Real scale;

  STOWAGE_BODY void operator()(Index i) const {
    store(dx, i, scale * Comparison::slope(load<Real>(x, i), load<Real>(target, i)));
  }
};

}  // namespace stowage::body
