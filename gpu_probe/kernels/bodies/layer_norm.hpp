// Layer normalisation of rows. The index is a row; for the gradients of the weights it is a tile of
// columns.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/group.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"

namespace stowage::body {

/// Forward; y may be x.
template <class T, class Real>
struct LayerNormForward {
  const T* x;
  T* y;
  Index width;
  Floats w, b, mean, rstd;
  Real eps;

  STOWAGE_BODY void operator()(Index row, const Group& group) const {
    const T* const in = x + row * width;
    Real sum = 0, squares = 0;
    for (Index i = group.rank(); i < width; i += group.size()) sum += load<Real>(in, i);
    const Real centre = sum_of(group, sum) / static_cast<Real>(width);
    for (Index i = group.rank(); i < width; i += group.size()) {
      const Real difference = load<Real>(in, i) - centre;
      squares += difference * difference;
    }
    const Real scale = 1 / body::sqrt(sum_of(group, squares) / static_cast<Real>(width) + eps);
    for (Index i = group.rank(); i < width; i += group.size()) {
      const Real normal = (load<Real>(in, i) - centre) * scale;
      store(y + row * width, i, w.is_there() ? normal * w.at<Real>(i) + b.at<Real>(i) : normal);
    }
    if (group.rank() != 0) return;
    mean.set(row, centre);
    rstd.set(row, scale);
  }
};

/// The gradient of x; dx may be dy.
template <class T, class Real>
struct LayerNormBackward {
  const T *x, *dy;
  T* dx;
  Index width;
  Floats w, mean, rstd;

  STOWAGE_BODY void operator()(Index row, const Group& group) const {
    const Real centre = mean.at<Real>(row), scale = rstd.at<Real>(row);
    const T *const in = x + row * width, *const arrives = dy + row * width;
    Pair<Real> sums{0, 0};
    for (Index i = group.rank(); i < width; i += group.size()) {
      const Real normal = (load<Real>(in, i) - centre) * scale;
      const Real g = load<Real>(arrives, i) * w.at(i, Real(1));
      sums = sums + Pair<Real>{g, g * normal};
    }
    sums = sum_of(group, sums);
    for (Index i = group.rank(); i < width; i += group.size()) {
      const Real normal = (load<Real>(in, i) - centre) * scale;
      const Real g = load<Real>(arrives, i) * w.at(i, Real(1));
      store(dx + row * width, i,
            scale * (g - sums.first / static_cast<Real>(width) -
                     normal * sums.second / static_cast<Real>(width)));
    }
  }
};

/// The gradients of the weights. To be launched before dx is written, which may lie over dy.
template <class T, class Real>
struct LayerNormWeights {
  const T *x, *dy;
  Index rows, width;
  Floats mean, rstd, dw, db;

  STOWAGE_BODY void operator()(Index tile, const Group& group) const {
    sum_columns<Pair<Real>>(
        group, tile, width, rows,
        [&](Index row, Index i) {
          const Real g = load<Real>(dy, row * width + i);
          const Real normal =
              (load<Real>(x, row * width + i) - mean.at<Real>(row)) * rstd.at<Real>(row);
          return Pair<Real>{g * normal, g};
        },
        [&](Index i, Pair<Real> sums) {
          dw.set(i, sums.first);
          db.set(i, sums.second);
        });
  }
};

}  // namespace stowage::body
