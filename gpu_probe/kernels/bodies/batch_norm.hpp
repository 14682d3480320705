// Batch normalisation by PyTorch's definitions: the biased batch variance normalises, the unbiased
// one enters the running variance, and `momentum` is the share of the new value. The index is a
// channel.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/planes.hpp"
#include "gpu_probe/kernels/bodies/unary.hpp"

namespace stowage::body {

/// y = f((x - mean) invstd w + b), with f an activation. Without w and b the scale is 1 and the
/// shift 0.
template <class T, class Real>
struct Normalised {
  const T* x;
  T* y;
  Planes planes;
  Floats w, b;

  template <class Activation>
  STOWAGE_BODY void apply(const Group& group, Index channel, Real mean, Real invstd,
                          Activation f) const {
    const Real scale = w.at(channel, Real(1)), shift = b.at(channel, Real(0));
    each_of_channel(group, planes, channel, [&](Index i) {
      store(y, i, f((load<Real>(x, i) - mean) * invstd * scale + shift));
    });
  }
  STOWAGE_BODY void apply(const Group& group, Index channel, Real mean, Real invstd) const {
    apply(group, channel, mean, invstd, [](Real value) { return value; });
  }
};

template <class T, class Real>
struct BatchNormForward {
  Normalised<T, Real> normalised;
  Floats mean, variance, save_mean, save_invstd, new_mean, new_variance;
  Real eps, momentum;

  STOWAGE_BODY void operator()(Index channel, const Group& group) const {
    const Planes& planes = normalised.planes;
    const Real elements = static_cast<Real>(planes.of_channel());
    const T* const x = normalised.x;
    Real sum = 0, squares = 0;
    each_of_channel(group, planes, channel, [&](Index i) { sum += load<Real>(x, i); });
    const Real centre = sum_of(group, sum) / elements;
    each_of_channel(group, planes, channel, [&](Index i) {
      const Real difference = load<Real>(x, i) - centre;
      squares += difference * difference;
    });
    squares = sum_of(group, squares);
    if (group.rank() == 0) {
      save_mean.set(channel, centre);
      save_invstd.set(channel, 1 / body::sqrt(squares / elements + eps));
      new_mean.set(channel, (1 - momentum) * mean.at<Real>(channel) + momentum * centre);
      new_variance.set(channel, (1 - momentum) * variance.at<Real>(channel) +
                                    momentum * squares / (elements - 1));
    }
    group.synchronize();
    // Uses the statistics as they are stored, so that backward, which reads them, gets the same
    // bits.
    normalised.apply(group, channel, save_mean.at<Real>(channel), save_invstd.at<Real>(channel));
  }
};

template <class T, class Real>
struct BatchNormApply {
  Normalised<T, Real> normalised;
  Floats save_mean, save_invstd;
  bool is_activated;
  Unary f;

  STOWAGE_BODY void operator()(Index channel, const Group& group) const {
    const Real mean = save_mean.at<Real>(channel), invstd = save_invstd.at<Real>(channel);
    if (!is_activated) return normalised.apply(group, channel, mean, invstd);
    normalised.apply(group, channel, mean, invstd, [&](Real value) {
      // The activation reads the value that the normalisation would have stored.
      T rounded;
      narrow(value, rounded);
      return f.value(static_cast<Real>(widened(rounded)));
    });
  }
};

template <class T, class Real>
struct BatchNormInference {
  Normalised<T, Real> normalised;
  Floats mean, variance;
  Real eps;

  STOWAGE_BODY void operator()(Index channel, const Group& group) const {
    const Real invstd = 1 / body::sqrt(variance.at<Real>(channel) + eps);
    normalised.apply(group, channel, mean.at<Real>(channel), invstd);
  }
};

/// Backward; dx may be dy.
template <class T, class Real>
struct BatchNormBackward {
  const T *x, *dy;
  T* dx;
  Planes planes;
  Floats w, save_mean, save_invstd, dw, db;

  STOWAGE_BODY void operator()(Index channel, const Group& group) const {
    const Real mean = save_mean.at<Real>(channel), invstd = save_invstd.at<Real>(channel);
    const Real elements = static_cast<Real>(planes.of_channel());
    Pair<Real> sums{0, 0};
    each_of_channel(group, planes, channel, [&](Index i) {
      const Real arrives = load<Real>(dy, i);
      sums.first += arrives;
      sums.second += arrives * (load<Real>(x, i) - mean) * invstd;
    });
    sums = sum_of(group, sums);
    const Real scale = w.at(channel, Real(1)) * invstd;
    each_of_channel(group, planes, channel, [&](Index i) {
      const Real normal = (load<Real>(x, i) - mean) * invstd;
      store(dx, i,
            scale * (load<Real>(dy, i) - sums.first / elements - normal * sums.second / elements));
    });
    if (group.rank() != 0 || !dw.is_there()) return;
    dw.set(channel, sums.second);
    db.set(channel, sums.first);
  }
};

}  // namespace stowage::body
