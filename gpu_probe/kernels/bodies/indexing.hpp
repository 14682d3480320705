// Elements that indices name: taken, and added to. Indices count from the end where they are
// negative; one out of range takes zeros and adds to nothing.
//
// What adds has one thread go over all indices of a line in their order, so that the same inputs
// give the same bits.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/integers.hpp"
#include "gpu_probe/kernels/bodies/strided.hpp"

namespace stowage::body {

constexpr int most_indices = 4;

/// Places along as many adjacent axes as there are indices, each repeated to one shape.
struct NamedRows {
  Integers indices[most_indices];
  Strided of[most_indices];
  Index sizes[most_indices];  ///< of the axes
  int axes;
  Index count;  ///< of named places
  Index rows;   ///< the product of `sizes`

  /// The k-th place among `rows`; -1: out of range.
  [[nodiscard]] STOWAGE_BODY Index row(Index k) const {
    Index at = 0;
    for (int i = 0; i < axes; ++i) {
      Index index = indices[i].at(of[i].offset(k));
      if (index < 0) index += sizes[i];
      if (index < 0 || index >= sizes[i]) return -1;
      at = at * sizes[i] + index;
    }
    return at;
  }
};

/// y: [outer, named, inner] of x: [outer, rows, inner]. The index is an element of y.
template <class Word>
struct TakeForward {
  const Word* x;
  Word* y;
  NamedRows named;
  Index inner;

  STOWAGE_BODY void operator()(Index i) const {
    const Index line = quotient(i, inner), outer = quotient(line, named.count);
    const Index row = named.row(line - outer * named.count);
    y[i] = row < 0 ? Word(0) : x[(outer * named.rows + row) * inner + i - line * inner];
  }
};

/// y = base, or zeros, with source: [outer, named, inner] added to the rows that are named. y may
/// be base. The index is a column: an inner place of an outer one.
template <class T, class Real>
struct AddRows {
  const T *base, *source;
  T* y;
  NamedRows named;
  Index inner;
  bool is_short;  ///< T is too short to add up in

  STOWAGE_BODY void operator()(Index i) const {
    const Index outer = quotient(i, inner), column = i - outer * inner;
    const Index first = outer * named.rows * inner + column;
    const T* const arrives = source + outer * named.count * inner + column;
    for (Index row = 0; row < named.rows; ++row) {
      const Index at = first + row * inner;
      Real sum = base == nullptr ? Real(0) : load<Real>(base, at);
      for (Index k = 0; is_short && k < named.count; ++k) {
        if (named.row(k) == row) sum += load<Real>(arrives, k * inner);
      }
      store(y, at, sum);
    }
    for (Index k = 0; !is_short && k < named.count; ++k) {
      const Index row = named.row(k), at = first + row * inner;
      if (row >= 0) store(y, at, load<Real>(y, at) + load<Real>(arrives, k * inner));
    }
  }
};

/// Places of an axis, one index for each element: those of a tensor of `sizes`, which is no larger
/// along the other axes.
struct NamedElements {
  Integers indices;
  Index sizes[most_axes];    ///< of the whole tensor
  Index named[most_axes];    ///< of indices
  Index strides[most_axes];  ///< of indices, row-major
  int axes, axis;

  /// The place along the axis that element k names; -1: out of range.
  [[nodiscard]] STOWAGE_BODY Index place(Index k) const {
    Index index = indices.at(k);
    if (index < 0) index += sizes[axis];
    return index < sizes[axis] ? index : -1;
  }
};

/// y: of the shape of the indices. The index is an element of it.
template <class Word>
struct GatherElements {
  const Word* x;
  Word* y;
  NamedElements named;
  Strided of_x;  ///< y's places in x, at the axis' beginning
  Index stride;  ///< of the axis in x

  STOWAGE_BODY void operator()(Index i) const {
    const Index place = named.place(i);
    y[i] = place < 0 ? Word(0) : x[of_x.offset(i) + place * stride];
  }
};

/// y = base, or zeros, with each element of source added where its index says, or put there, the
/// last of several. y may be base. The index is an element of y, which looks for itself among those
/// that lie on its line.
template <class T, class Real>
struct ScatterAdd {
  const T *base, *source;
  T* y;
  NamedElements named;
  bool replaces;

  STOWAGE_BODY void operator()(Index i) const {
    Real sum = base == nullptr ? Real(0) : load<Real>(base, i);
    Index left = i, first = 0, place = 0;
    bool is_named = true;
    for (int axis = named.axes - 1; axis >= 0; --axis) {
      const Index before = quotient(left, named.sizes[axis]);
      const Index at = left - before * named.sizes[axis];
      left = before;
      if (axis == named.axis) {
        place = at;
      } else {
        is_named = is_named && at < named.named[axis];
        first += at * named.strides[axis];
      }
    }
    const Index length = is_named ? named.named[named.axis] : 0;
    for (Index k = 0; k < length; ++k) {
      const Index at = first + k * named.strides[named.axis];
      if (named.place(at) != place) continue;
      sum = load<Real>(source, at) + (replaces ? Real(0) : sum);
    }
    store(y, i, sum);
  }
};

}  // namespace stowage::body
