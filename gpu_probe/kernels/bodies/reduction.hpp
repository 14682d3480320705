// Sums over some axes of a tensor, and the reverse: one value repeated along axes.
#pragma once

#include "gpu_probe/kernels/bodies/alone.hpp"
#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/group.hpp"
#include "gpu_probe/kernels/bodies/strided.hpp"

namespace stowage::body {

/// For sums over the last axis (and others). The index is an element of y.
template <class T, class Real>
struct SumOfEach {
  const T* x;
  Floats y;
  Strided kept, summed;
  Index together;  ///< number of elements of x in a sum
  Real divisor;

  template <class Threads>
  STOWAGE_BODY void run(Index i, const Threads& threads) const {
    const T* const first = x + kept.offset(i);
    Real sum = 0;
    for (Index j = threads.rank(); j < together; j += threads.size()) {
      sum += load<Real>(first, summed.offset(j));
    }
    sum = threads.combined(sum, Sum{});
    if (threads.rank() == 0) y.set(i, sum / divisor);
  }
  STOWAGE_BODY void operator()(Index i) const { run(i, Alone{}); }
  STOWAGE_BODY void operator()(Index i, const Group& group) const { run(i, group); }
};

/// For sums that keep the last axis, of `columns`. The index is a tile of columns at a position of
/// the kept axes before it.
template <class T, class Real>
struct SumOfColumns {
  const T* x;
  Floats y;
  Strided kept, summed;  ///< of the axes before the last
  Index columns, together;
  Real divisor;

  STOWAGE_BODY void operator()(Index i, const Group& group) const {
    const Index tiles = tiles_of(columns), place = quotient(i, tiles), tile = i - place * tiles;
    const T* const first = x + kept.offset(place);
    sum_columns<Real>(
        group, tile, columns, together,
        [&](Index row, Index column) { return load<Real>(first, summed.offset(row) + column); },
        [&](Index column, Real sum) { y.set(place * columns + column, sum / divisor); });
  }
};

/// y = factor x. The index is an element of y.
template <class T, class Real>
struct Expand {
  Floats x;
  T* y;
  Strided of_x;
  Real factor;
  STOWAGE_BODY void operator()(Index i) const { store(y, i, factor * x.at<Real>(of_x.offset(i))); }
};

}  // namespace stowage::body
