// Group normalisation: the channels of each image are divided into equal groups, and each group is
// normalised. The index is a group of an image; for the gradients of the weights it is a channel.
#pragma once

#include "gpu_probe/kernels/bodies/division.hpp"
#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"
#include "gpu_probe/kernels/bodies/planes.hpp"

namespace stowage::body {

/// x is [images, groups, channels of a group, area].
struct ChannelGroups {
  Index groups, channels, area;

  [[nodiscard]] STOWAGE_BODY Index elements() const { return channels * area; }
  /// The channel of an element of a group.
  [[nodiscard]] STOWAGE_BODY Index channel(Index group, Index element) const {
    return group % groups * channels + quotient(element, area);
  }
};

/// Forward; y may be x.
template <class T, class Real>
struct GroupNormForward {
  const T* x;
  T* y;
  ChannelGroups of;
  Floats w, b, mean, rstd;
  Real eps;

  STOWAGE_BODY void operator()(Index index, const Group& group) const {
    const Index size = of.elements();
    const T* const in = x + index * size;
    Real sum = 0, squares = 0;
    for (Index i = group.rank(); i < size; i += group.size()) sum += load<Real>(in, i);
    const Real centre = sum_of(group, sum) / static_cast<Real>(size);
    for (Index i = group.rank(); i < size; i += group.size()) {
      const Real difference = load<Real>(in, i) - centre;
      squares += difference * difference;
    }
    const Real scale = 1 / body::sqrt(sum_of(group, squares) / static_cast<Real>(size) + eps);
    for (Index i = group.rank(); i < size; i += group.size()) {
      Real normal = (load<Real>(in, i) - centre) * scale;
      if (w.is_there()) {
        const Index channel = of.channel(index, i);
        normal = normal * w.at<Real>(channel) + b.at<Real>(channel);
      }
      store(y + index * size, i, normal);
    }
    if (group.rank() != 0) return;
    mean.set(index, centre);
    rstd.set(index, scale);
  }
};

/// The gradient of x; dx may be dy.
template <class T, class Real>
struct GroupNormBackward {
  const T *x, *dy;
  T* dx;
  ChannelGroups of;
  Floats w, mean, rstd;

  STOWAGE_BODY void operator()(Index index, const Group& group) const {
    const Index size = of.elements();
    const T *const in = x + index * size, *const arrives = dy + index * size;
    const Real centre = mean.at<Real>(index), scale = rstd.at<Real>(index);
    const auto gradient = [&](Index i) {
      const Real value = load<Real>(arrives, i);
      return w.is_there() ? value * w.at<Real>(of.channel(index, i)) : value;
    };
    Pair<Real> sums{0, 0};
    for (Index i = group.rank(); i < size; i += group.size()) {
      const Real normal = (load<Real>(in, i) - centre) * scale, g = gradient(i);
      sums = sums + Pair<Real>{g, g * normal};
    }
    sums = sum_of(group, sums);
    for (Index i = group.rank(); i < size; i += group.size()) {
      const Real normal = (load<Real>(in, i) - centre) * scale, g = gradient(i);
      store(dx + index * size, i,
            scale * (g - (sums.first + normal * sums.second) / static_cast<Real>(size)));
    }
  }
};

/// The gradients of the weights. To be launched before dx is written, which may lie over dy.
template <class T, class Real>
struct GroupNormWeights {
  const T *x, *dy;
  Planes planes;
  Index groups, channels;  ///< channels: of a group
  Floats mean, rstd, dw, db;

  STOWAGE_BODY void operator()(Index channel, const Group& group) const {
    Pair<Real> sums{0, 0};
    const Index image = planes.channels * planes.area;
    each_of_channel(group, planes, channel, [&](Index i) {
      const Index statistic = quotient(i, image) * groups + quotient(channel, channels);
      const Real normal = (load<Real>(x, i) - mean.at<Real>(statistic)) * rstd.at<Real>(statistic);
      const Real arrives = load<Real>(dy, i);
      sums = sums + Pair<Real>{arrives * normal, arrives};
    });
    sums = sum_of(group, sums);
    if (group.rank() != 0) return;
    dw.set(channel, sums.first);
    db.set(channel, sums.second);
  }
};

}  // namespace stowage::body
