// Local response normalisation (Krizhevsky et al., 2012, section 3.3), as PyTorch defines it:
// y = x scale^-beta with scale = k + alpha / size * (sum of x^2 over `size` neighbouring channels),
// those outside counting as 0. The index is a channel of an image, whose area a group shares.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"
#include "gpu_probe/kernels/bodies/planes.hpp"

namespace stowage::body {

/// The channels [c - below, c + above] of each channel c.
struct Neighbours {
  Planes planes;
  Index below, above;

  /// Calls visit(element, its first neighbour, the number of its neighbours).
  template <class Visit>
  STOWAGE_BODY void each(const Group& group, Index plane, Visit visit) const {
    const Index area = planes.area, channel = plane % planes.channels;
    const Index first = most(channel - below, Index{0});
    const Index last = least(channel + above, planes.channels - 1);
    for (Index i = group.rank(); i < area; i += group.size()) {
      visit(plane * area + i, (plane - channel + first) * area + i, last - first + 1);
    }
  }
};

template <class T, class Real>
struct LocalResponseNormForward {
  const T* x;
  T *y, *scales;
  Neighbours neighbours;
  Real share, beta, k;  ///< share: alpha / size

  STOWAGE_BODY void operator()(Index plane, const Group& group) const {
    neighbours.each(group, plane, [&](Index i, Index first, Index channels) {
      Real squares = 0;
      for (Index c = 0; c < channels; ++c) {
        const Real value = load<Real>(x, first + c * neighbours.planes.area);
        squares += value * value;
      }
      const Real scale = k + share * squares;
      store(scales, i, scale);
      store(y, i, load<Real>(x, i) * body::pow(scale, -beta));
    });
  }
};

/// Backward. The neighbours of a channel are here the channels that have it among their neighbours.
template <class T, class Real>
struct LocalResponseNormBackward {
  const T *x, *y, *scales, *dy;
  T* dx;
  Neighbours neighbours;
  Real share, beta;  ///< share: 2 alpha beta / size

  STOWAGE_BODY void operator()(Index plane, const Group& group) const {
    neighbours.each(group, plane, [&](Index i, Index first, Index channels) {
      Real sum = 0;
      for (Index c = 0; c < channels; ++c) {
        const Index at = first + c * neighbours.planes.area;
        sum += load<Real>(dy, at) * load<Real>(y, at) / load<Real>(scales, at);
      }
      store(dx, i,
            load<Real>(dy, i) * body::pow(load<Real>(scales, i), -beta) -
                share * load<Real>(x, i) * sum);
    });
  }
};

}  // namespace stowage::body
