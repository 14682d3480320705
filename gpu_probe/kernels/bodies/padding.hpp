// Padding and rolling. Each axis maps the positions of the result to positions of x, or to none.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/strided.hpp"

namespace stowage::body {

enum class PaddingMode : Byte { constant, reflect, replicate, circular };

struct PaddedAxis {
  Index in, out, before;  ///< a negative `before` cuts elements off
  Index stride;           ///< of x

  [[nodiscard]] STOWAGE_BODY static Index wrapped(Index at, Index size) {
    return (at % size + size) % size;
  }

  /// The position of x whose value position `to` of the result has; -1: none.
  [[nodiscard]] STOWAGE_BODY Index source(Index to, PaddingMode mode) const {
    const Index at = to - before;
    if (at >= 0 && at < in) return at;
    switch (mode) {
      case PaddingMode::constant:
        return -1;
      case PaddingMode::replicate:
        return at < 0 ? 0 : in - 1;
      case PaddingMode::circular:
        return wrapped(at, in);
      case PaddingMode::reflect:  // the border element is not repeated
        return at < 0 ? -at : 2 * (in - 1) - at;
    }
    return -1;
  }

  /// The first position of the result after `after` that has the value of position `at`; `out`:
  /// none.
  [[nodiscard]] STOWAGE_BODY Index next(Index at, Index after, PaddingMode mode) const {
    const Index own = at + before;
    switch (mode) {
      case PaddingMode::constant:
        return first_of(own, own, own, after);
      case PaddingMode::replicate: {
        const Index begin = at == 0 ? 0 : own, end = at == in - 1 ? out : own + 1;
        const Index to = most(after + 1, most(begin, Index(0)));
        return to < least(end, out) ? to : out;
      }
      case PaddingMode::circular: {
        const Index first = wrapped(own, in);
        const Index to = after < first ? first : first + ((after - first) / in + 1) * in;
        return least(to, out);
      }
      case PaddingMode::reflect:
        return first_of(at > 0 ? before - at : own, own,
                        at < in - 1 ? before + 2 * (in - 1) - at : own, after);
    }
    return out;
  }

 private:
  /// The first of three positions, in rising order, that is after `after`.
  [[nodiscard]] STOWAGE_BODY Index first_of(Index a, Index b, Index c, Index after) const {
    if (a > after && a >= 0 && a < out) return a;
    if (b > after && b >= 0 && b < out) return b;
    return c > after && c >= 0 && c < out ? c : out;
  }
};

struct PaddedAxes {
  PaddedAxis axis[most_axes];
  int axes;
  PaddingMode mode;
};

/// Forward. The index is an element of y.
template <class Word>
struct Pad {
  const Word* x;
  Word* y;
  PaddedAxes axes;
  Word value;

  STOWAGE_BODY void operator()(Index i) const {
    Index at = 0, left = i;
    for (int k = axes.axes - 1; k >= 0; --k) {
      const PaddedAxis& axis = axes.axis[k];
      const Index before = quotient(left, axis.out);
      const Index source = axis.source(left - before * axis.out, axes.mode);
      if (source < 0) {
        y[i] = value;
        return;
      }
      at += source * axis.stride;
      left = before;
    }
    y[i] = x[at];
  }
};

/// Backward: each element of dx is the sum, in order, of the elements of dy that have its value.
/// The index is an element of dx.
template <class T, class Real>
struct PadBackward {
  const T* dy;
  T* dx;
  PaddedAxes axes;

  STOWAGE_BODY void operator()(Index i) const {
    Index at[most_axes] = {}, to[most_axes] = {}, apart[most_axes] = {};
    Index left = i, stride = 1;
    for (int k = axes.axes - 1; k >= 0; --k) {
      const PaddedAxis& axis = axes.axis[k];
      const Index before = quotient(left, axis.in);
      at[k] = left - before * axis.in;
      left = before;
      apart[k] = stride;
      stride *= axis.out;
      to[k] = axis.next(at[k], -1, axes.mode);
      if (to[k] == axis.out) {
        store(dx, i, Real(0));
        return;
      }
    }
    Real sum = 0;
    for (bool more = true; more;) {
      Index from = 0;
      for (int k = 0; k < axes.axes; ++k) from += to[k] * apart[k];
      sum += load<Real>(dy, from);
      more = false;
      for (int k = axes.axes - 1; k >= 0 && !more; --k) {
        to[k] = axes.axis[k].next(at[k], to[k], axes.mode);
        more = to[k] != axes.axis[k].out;
        if (!more) to[k] = axes.axis[k].next(at[k], -1, axes.mode);
      }
    }
    store(dx, i, sum);
  }
};

}  // namespace stowage::body
