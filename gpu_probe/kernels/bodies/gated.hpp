// Activations with a second operand: PReLU, whose slope is learnt, and gated linear units.
#pragma once

#include "gpu_probe/kernels/bodies/division.hpp"
#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"
#include "gpu_probe/kernels/bodies/planes.hpp"

namespace stowage::body {

/// Element i of x has slope number i / area % count.
struct Slopes {
  Floats w;
  Index count, area;

  [[nodiscard]] STOWAGE_BODY Index of(Index i) const {
    return count == 1 ? 0 : quotient(i, area) % count;
  }
};

/// PReLU's forward; y may be x. The index is an element.
template <class T, class Real>
struct PreluForward {
  const T* x;
  T* y;
  Slopes slopes;
  STOWAGE_BODY void operator()(Index i) const {
    const Real value = load<Real>(x, i);
    store(y, i, value > 0 ? value : value * slopes.w.at<Real>(slopes.of(i)));
  }
};

/// PReLU's gradient of x; dx may be dy. The index is an element.
template <class T, class Real>
struct PreluBackward {
  const T *x, *dy;
  T* dx;
  Slopes slopes;
  STOWAGE_BODY void operator()(Index i) const {
    const Real arrives = load<Real>(dy, i);
    store(dx, i, load<Real>(x, i) > 0 ? arrives : arrives * slopes.w.at<Real>(slopes.of(i)));
  }
};

/// PReLU's gradient of the slopes. To be launched before dx is written, which may lie over dy. The
/// index is a slope.
template <class T, class Real>
struct PreluSlopes {
  const T *x, *dy;
  Floats dw;
  Planes planes;
  STOWAGE_BODY void operator()(Index slope, const Group& group) const {
    Real sum = 0;
    each_of_channel(group, planes, slope, [&](Index i) {
      const Real value = load<Real>(x, i);
      if (!(value > 0)) sum += load<Real>(dy, i) * value;
    });
    sum = sum_of(group, sum);
    if (group.rank() == 0) dw.set(slope, sum);
  }
};

/// x is [outer, 2 half]: the gated values and the gates, in either order. The index is an element
/// of y.
struct Halves {
  Index half;
  bool first_is_gate, silu;

  /// The positions in x of a gated value and its gate.
  struct Places {
    Index gated, gate;
  };
  [[nodiscard]] STOWAGE_BODY Places at(Index i) const {
    const Index first = quotient(i, half) * half + i, second = first + half;
    return first_is_gate ? Places{second, first} : Places{first, second};
  }
  template <class Real>
  [[nodiscard]] STOWAGE_BODY Real gate(Real x) const {
    return silu ? x * sigmoid(x) : sigmoid(x);
  }
  template <class Real>
  [[nodiscard]] STOWAGE_BODY Real slope(Real x) const {
    const Real s = sigmoid(x);
    return silu ? s * (1 + x * (1 - s)) : s * (1 - s);
  }
};

template <class T, class Real>
struct GluForward {
  const T* x;
  T* y;
  Halves halves;
  STOWAGE_BODY void operator()(Index i) const {
    const Halves::Places p = halves.at(i);
    store(y, i, load<Real>(x, p.gated) * halves.gate(load<Real>(x, p.gate)));
  }
};

template <class T, class Real>
struct GluBackward {
  const T *x, *dy;
  T* dx;
  Halves halves;
  STOWAGE_BODY void operator()(Index i) const {
    const Halves::Places p = halves.at(i);
    const Real arrives = load<Real>(dy, i), gated = load<Real>(x, p.gated),
               gate = load<Real>(x, p.gate);
    store(dx, p.gated, arrives * halves.gate(gate));
    store(dx, p.gate, arrives * gated * halves.slope(gate));
  }
};

}  // namespace stowage::body
