// Bodies that go along one axis position by position: positions of extrema, the largest elements in
// order, running sums. The index is a line along the axis.
#pragma once

#include "gpu_probe/kernels/bodies/division.hpp"
#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/integers.hpp"

namespace stowage::body {

struct Line {
  Index length, inner;  ///< elements of the axis, and apart

  [[nodiscard]] STOWAGE_BODY Index first(Index i, Index places) const {
    const Index outer = quotient(i, inner);
    return outer * places * inner + i - outer * inner;
  }
};

/// Finds the largest elements in falling order, or the smallest in rising order. Of equal ones the
/// first comes first; NaN counts as the largest, as in PyTorch.
template <class T, class Real>
struct TopPlaces {
  const T* x;
  T* y;  ///< null: not asked for
  Integers indices;
  Line line;
  Index count;
  bool rising;

  STOWAGE_BODY void operator()(Index i) const {
    const Index from = line.first(i, line.length), to = line.first(i, count);
    Index last = -1;
    for (Index k = 0; k < count; ++k) {
      Index best = -1;
      for (Index j = 0; j < line.length; ++j) {
        if (last >= 0 && !comes_before(from, last, j)) continue;
        if (best < 0 || comes_before(from, j, best)) best = j;
      }
      last = best;
      if (y != nullptr) y[to + k * line.inner] = x[from + best * line.inner];
      indices.set(to + k * line.inner, best);
    }
  }

 private:
  [[nodiscard]] STOWAGE_BODY bool comes_before(Index from, Index a, Index b) const {
    const Real first = load<Real>(x, from + a * line.inner);
    const Real second = load<Real>(x, from + b * line.inner);
    const bool above = first > second || (first != first && second == second);
    const bool below = first < second || (second != second && first == first);
    if (!above && !below) return a < b;
    return rising ? below : above;
  }
};

/// Running sums up to each position or, reversed, from it to the end; summed in Real. y may be x.
template <class T, class Real>
struct Cumulate {
  const T* x;
  T* y;
  Line line;
  bool reverse;

  STOWAGE_BODY void operator()(Index i) const {
    const Index first = line.first(i, line.length);
    Real sum = 0;
    for (Index k = 0; k < line.length; ++k) {
      const Index at = first + (reverse ? line.length - 1 - k : k) * line.inner;
      sum += load<Real>(x, at);
      store(y, at, sum);
    }
  }
};

struct CumulateIntegers {
  const Index* x;
  Index* y;
  Line line;
  bool reverse;

  STOWAGE_BODY void operator()(Index i) const {
    const Index first = line.first(i, line.length);
    Word64 sum = 0;  // wraps round, as in PyTorch
    for (Index k = 0; k < line.length; ++k) {
      const Index at = first + (reverse ? line.length - 1 - k : k) * line.inner;
      sum += static_cast<Word64>(x[at]);
      y[at] = static_cast<Index>(sum);
    }
  }
};

/// Sets y, [..., classes], to 1 at the class of each row and to 0 elsewhere. The index is an
/// element of y.
struct OneHot {
  Integers indices, y;
  Index classes;
  STOWAGE_BODY void operator()(Index i) const {
    const Index place = quotient(i, classes);
    y.set(i, indices.at(place) == i - place * classes ? 1 : 0);
  }
};

}  // namespace stowage::body
