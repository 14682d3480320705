// Lines: a tensor as lines along one of its axes. Softmax and losses over classes work on lines.
//
// If the axis is the last one, a group of threads shares a line. Otherwise neighbouring lines lie
// side by side, and one thread runs each. A body has both forms: it is a function of a line and of
// `Threads`, a Group or Alone.
#pragma once

#include "gpu_probe/kernels/bodies/alone.hpp"
#include "gpu_probe/kernels/bodies/division.hpp"
#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/group.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"

namespace stowage::body {

/// A tensor [outer, length, inner]: line l goes along the middle axis at position l / inner of the
/// outer axis and position l % inner of the inner one.
struct Lines {
  Index length, inner;

  [[nodiscard]] STOWAGE_BODY Index outer(Index line) const {
    return inner == 1 ? line : quotient(line, inner);
  }
  /// The line's first element. The others follow in steps of `inner`.
  [[nodiscard]] STOWAGE_BODY Index first(Index line) const {
    return outer(line) * (length - 1) * inner + line;
  }
};

/// The largest of a line's first `active` elements, and the sum of e^(x - largest) over these.
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
