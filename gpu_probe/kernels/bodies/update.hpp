// Updates of a parameter, element by element, as torch.optim defines them. Values that depend only
// on the settings and the step are computed by the row, in double.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"

namespace stowage::body {

constexpr int most_states = 3;

/// One element of the parameter, of its gradient, and of the state in the row's order.
template <class Real>
struct Weight {
  Real p, g;
  Real state[most_states];
};

template <class Real>
STOWAGE_BODY Real lerp(Real from, Real to, Real share) {
  return from + share * (to - from);
}

/// Updates the parameter and its state in place. The gradient has a format of its own: the
/// parameter may be a float32 copy of a 16-bit one. The index is an element.
template <class T, class Real, class Rule>
struct Update {
  T* p;
  Floats g;
  T* state[most_states];  ///< null: no such state
  Rule rule;

  STOWAGE_BODY void operator()(Index i) const {
    Weight<Real> w{load<Real>(p, i), g.at<Real>(i), {}};
    for (int k = 0; k < most_states; ++k) {
      if (state[k] != nullptr) w.state[k] = load<Real>(state[k], i);
    }
    rule(w);
    for (int k = 0; k < most_states; ++k) {
      if (state[k] != nullptr) store(state[k], i, w.state[k]);
    }
    store(p, i, w.p);
  }
};

template <class Real>
struct Sgd {
  Real rate, momentum, decay;
  Real share;  ///< share of the gradient in the buffer: 1 - dampening
  bool has_buffer, nesterov;

  STOWAGE_BODY void operator()(Weight<Real>& w) const {
    Real gradient = w.g + decay * w.p;
    if (has_buffer) {
      const Real buffer = momentum * w.state[0] + share * gradient;
      w.state[0] = buffer;
      gradient = nesterov ? gradient + momentum * buffer : buffer;
    }
    w.p = w.p - rate * gradient;
  }
};

/// `share` is 1 - beta, `correction1` is 1 - beta1^step, `correction2` is the square root of 1 -
/// beta2^step.
template <class Real>
struct Adam {
  Real rate, beta1, share1, beta2, share2, epsilon, decay, correction1, correction2;
  bool decoupled, amsgrad;

  STOWAGE_BODY void operator()(Weight<Real>& w) const {
    Real value = w.p, gradient = w.g;
    if (decoupled) {
      value -= rate * decay * value;
    } else {
      gradient += decay * value;
    }
    const Real first = beta1 * w.state[0] + share1 * gradient;
    const Real second = beta2 * w.state[1] + share2 * gradient * gradient;
    w.state[0] = first;
    w.state[1] = second;
    Real divisor = second;
    if (amsgrad) {
      divisor = most(w.state[2], second);
      w.state[2] = divisor;
    }
    const Real denominator = body::sqrt(divisor) / correction2 + epsilon;
    w.p = value - rate / correction1 * first / denominator;
  }
};

template <class Real>
struct Adagrad {
  Real rate, decay, epsilon;

  STOWAGE_BODY void operator()(Weight<Real>& w) const {
    const Real g = w.g + decay * w.p;
    const Real total = w.state[0] + g * g;
    w.state[0] = total;
    w.p = w.p - rate * g / (body::sqrt(total) + epsilon);
  }
};

/// The state is: the mean square, [the momentum's buffer], [the mean gradient, if centered].
template <class Real>
struct Rmsprop {
  Real rate, decay, momentum, smoothing, share, epsilon;
  bool has_buffer, centered;

  STOWAGE_BODY void operator()(Weight<Real>& w) const {
    const Real g = w.g + decay * w.p;
    const Real squares = smoothing * w.state[0] + share * g * g;
    w.state[0] = squares;
    Real variance = squares;
    if (centered) {
      Real& mean = has_buffer ? w.state[2] : w.state[1];
      mean = lerp(mean, g, share);
      variance -= mean * mean;
    }
    Real update = g / (body::sqrt(variance) + epsilon);
    if (has_buffer) {
      update += momentum * w.state[1];
      w.state[1] = update;
    }
    w.p = w.p - rate * update;
  }
};

template <class Real>
struct Adadelta {
  Real rate, decay, smoothing, share, epsilon;

  STOWAGE_BODY void operator()(Weight<Real>& w) const {
    const Real g = w.g + decay * w.p;
    const Real squares = smoothing * w.state[0] + share * g * g;
    const Real delta = body::sqrt(w.state[1] + epsilon) / body::sqrt(squares + epsilon) * g;
    w.state[0] = squares;
    w.state[1] = smoothing * w.state[1] + share * delta * delta;
    w.p = w.p - rate * delta;
  }
};

template <class Real>
struct Adamax {
  Real rate, decay, share1, beta2, epsilon;  ///< rate: divided by 1 - beta1^step

  STOWAGE_BODY void operator()(Weight<Real>& w) const {
    const Real g = w.g + decay * w.p;
    w.state[0] = lerp(w.state[0], g, share1);
    w.state[1] = most(beta2 * w.state[1], body::fabs(g) + epsilon);
    w.p = w.p - rate * w.state[0] / w.state[1];
  }
};

/// Adam's two moments, with either kind of weight decay.
template <class Real>
struct Moments {
  Real rate, decay, share1, beta2, share2;
  bool decoupled;

  struct Of {
    Real value, g, first, second;
  };
  STOWAGE_BODY Of operator()(Weight<Real>& w) const {
    Real value = w.p, g = w.g;
    if (decoupled) {
      value -= rate * decay * value;
    } else {
      g += decay * value;
    }
    w.state[0] = lerp(w.state[0], g, share1);
    w.state[1] = beta2 * w.state[1] + share2 * g * g;
    return {value, g, w.state[0], w.state[1]};
  }
};

template <class Real>
struct Nadam {
  Moments<Real> moments;
  Real of_gradient, of_moment, correction, epsilon;

  STOWAGE_BODY void operator()(Weight<Real>& w) const {
    const typename Moments<Real>::Of m = moments(w);
    w.p = m.value -
          (of_gradient * m.g + of_moment * m.first) / (body::sqrt(m.second / correction) + epsilon);
  }
};

template <class Real>
struct Radam {
  Moments<Real> moments;
  Real correction1, rectified, root, epsilon;  ///< root: the square root of 1 - beta2^step
  bool rectifies;

  STOWAGE_BODY void operator()(Weight<Real>& w) const {
    const typename Moments<Real>::Of m = moments(w);
    Real update = moments.rate * m.first / correction1;
    if (rectifies) update = update * rectified * root / (body::sqrt(m.second) + epsilon);
    w.p = m.value - update;
  }
};

template <class Real>
struct Lion {
  Real rate, kept, share1, share2;  ///< kept: the factor of the parameter, by weight decay

  STOWAGE_BODY void operator()(Weight<Real>& w) const {
    const Real direction = lerp(w.state[0], w.g, share1);
    const Real sign = static_cast<Real>(direction > 0 ? 1 : direction < 0 ? -1 : 0);
    w.p = w.p * kept - rate * sign;
    w.state[0] = lerp(w.state[0], w.g, share2);
  }
};

}  // namespace stowage::body
