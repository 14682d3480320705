// Root mean square normalisation of rows. The index is a row; for the gradient of the weight it is
// a tile of columns.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/group.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"

namespace stowage::body {

/// y = w x / sqrt(mean(x^2) + eps); y may be x.
template <class T, class Real>
struct RmsNormForward {
  const T* x;
  T* y;
  Index width;
  Floats w, rstd;
  Real eps;

  STOWAGE_BODY void operator()(Index row, const Group& group) const {
    const T* const in = x + row * width;
    Real squares = 0;
    for (Index i = group.rank(); i < width; i += group.size()) {
      const Real value = load<Real>(in, i);
      squares += value * value;
    }
    const Real scale = 1 / body::sqrt(sum_of(group, squares) / static_cast<Real>(width) + eps);
    for (Index i = group.rank(); i < width; i += group.size()) {
      store(y + row * width, i, load<Real>(in, i) * scale * w.at(i, Real(1)));
    }
    if (group.rank() == 0) rstd.set(row, scale);
  }
};

/// The gradient of x; dx may be dy.
template <class T, class Real>
struct RmsNormBackward {
  const T *x, *dy;
  T* dx;
  Index width;
  Floats w, rstd;

  STOWAGE_BODY void operator()(Index row, const Group& group) const {
    const Real scale = rstd.at<Real>(row);
    const T *const in = x + row * width, *const arrives = dy + row * width;
    Real product = 0;
    for (Index i = group.rank(); i < width; i += group.size()) {
      product += load<Real>(arrives, i) * w.at(i, Real(1)) * (load<Real>(in, i) * scale);
    }
    const Real share = sum_of(group, product) / static_cast<Real>(width);
    for (Index i = group.rank(); i < width; i += group.size()) {
      const Real g = load<Real>(arrives, i) * w.at(i, Real(1));
      store(dx + row * width, i, scale * (g - load<Real>(in, i) * scale * share));
    }
  }
};

/// The gradient of the weight. To be launched before dx is written, which may lie over dy.
template <class T, class Real>
struct RmsNormWeights {
  const T *x, *dy;
  Index rows, width;
  Floats rstd, dw;

  STOWAGE_BODY void operator()(Index tile, const Group& group) const {
    sum_columns<Real>(
        group, tile, width, rows,
        [&](Index row, Index i) {
          const Index at = row * width + i;
          return load<Real>(dy, at) * (load<Real>(x, at) * rstd.at<Real>(row));
        },
        [&](Index i, Real sum) { dw.set(i, sum); });
  }
};

}  // namespace stowage::body
