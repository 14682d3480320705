// Copies the windows of images to columns (im2col), and sums columns back into images (col2im).
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/place.hpp"

namespace stowage::body {

struct UnfoldedAxis {
  Index in, out, kernel, stride, padding, dilation;

  /// The position of tap t of window o; -1: in the padding.
  [[nodiscard]] STOWAGE_BODY Index source(Index o, Index t) const {
    const Index at = o * stride - padding + t * dilation;
    return at >= 0 && at < in ? at : -1;
  }
  /// The window whose tap t lies at position i; -1: none.
  [[nodiscard]] STOWAGE_BODY Index window(Index i, Index t) const {
    const Index from = i + padding - t * dilation;
    if (from < 0) return -1;
    const Index o = quotient(from, stride);
    return o * stride == from && o < out ? o : -1;
  }
};

/// y is [planes, taps, windows], x is [planes, height, width]. The index is an element of y.
template <class T, class Real>
struct Unfold {
  const T* x;
  T* y;
  UnfoldedAxis height, width;

  STOWAGE_BODY void operator()(Index i) const {
    const Index windows = height.out * width.out, line = quotient(i, windows);
    const Place at = place_of(line, 1, height.kernel, width.kernel);
    const Index window = i - line * windows, row = quotient(window, width.out);
    const Index from_row = height.source(row, at.second);
    const Index from_column = width.source(window - row * width.out, at.third);
    if (from_row < 0 || from_column < 0) return store(y, i, Real(0));
    y[i] = x[(at.plane * height.in + from_row) * width.in + from_column];
  }
};

/// y is [planes, height, width]. The index is an element of y.
template <class T, class Real>
struct Fold {
  const T* x;
  T* y;
  UnfoldedAxis height, width;

  STOWAGE_BODY void operator()(Index i) const {
    const Place at = place_of(i, 1, height.in, width.in);
    Real sum = 0;
    for (Index t = 0; t < height.kernel; ++t) {
      const Index row = height.window(at.second, t);
      if (row < 0) continue;
      for (Index u = 0; u < width.kernel; ++u) {
        const Index column = width.window(at.third, u);
        if (column < 0) continue;
        const Index tap = (at.plane * height.kernel + t) * width.kernel + u;
        sum += load<Real>(x, (tap * height.out + row) * width.out + column);
      }
    }
    store(y, i, sum);
  }
};

}  // namespace stowage::body
