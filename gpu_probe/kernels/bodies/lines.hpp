// A tensor as lines along one of its axes: what softmax and losses over classes work on.
//
// Where the axis is the last one, a group of threads shares a line; else neighbouring lines lie
// side by side, and each has a thread to itself. A body has both forms, by a function of a line and
// of `Threads`, a Group or Alone.
#pragma once

#include "gpu_probe/kernels/bodies/alone.hpp"
#include "gpu_probe/kernels/bodies/division.hpp"
#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/group.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"

namespace stowage::body {

/// [outer, length, inner]: line l runs along the middle axis at outer l / inner, inner l % inner.
struct Lines {
  Index length, inner;

  [[nodiscard]] STOWAGE_BODY Index outer(Index line) const {
    return inner == 1 ? line : quotient(line, inner);
  }
  /// Its first element; the others follow by steps of `inner`.
  [[nodiscard]] STOWAGE_BODY Index first(Index line) const {
    return outer(line) * (length - 1) * inner + line;
  }
};

/// The largest of a line's first `active` elements, and the sum of e^(x - largest) over them.
template <class Real>
struct Exponentials {
  Real largest, sum;
};
template <class Real, class T, class Threads>
STOWAGE_BODY Exponentials<Real> exponentials(const Threads& threads, const T* first, Index step,
                                             Index active) {
  Real largest = -infinity<Real>(), sum = 0;
  for (Index j = threads.rank(); j < active; j += threads.size()) {
    largest = Maximum{}(largest, load<Real>(first, j * step));
  }
  largest = threads.combined(largest, Maximum{});
  for (Index j = threads.rank(); j < active; j += threads.size()) {
    sum += body::exp(load<Real>(first, j * step) - largest);
  }
  return {largest, threads.combined(sum, Sum{})};
}

}  // namespace stowage::body
