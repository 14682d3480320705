// Reads elements by index, and adds to elements by index. A negative index counts from the end. An
// index out of range reads 0 and adds to nothing.
//
// A body that adds has one thread go over all indices of a line in their order, so that the same
// inputs give the same bits.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/integers.hpp"
#include "gpu_probe/kernels/bodies/strided.hpp"

namespace stowage::body {

constexpr int most_indices = 4;

/// Positions along adjacent axes, with one index tensor for each axis, all repeated to one shape.
struct NamedRows {
  Integers indices[most_indices];
  Strided of[most_indices];
  Index sizes[most_indices];  ///< of the axes
  int axes;
  Index count;  ///< number of indexed positions
  Index rows;   ///< the product of `sizes`

  /// The k-th indexed position, as one of `rows`; -1: out of range.
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

/// Reads rows: y is [outer, indexed, inner], x is [outer, rows, inner]. The index is an element of
/// y.
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

/// Adds to rows: y = base (or 0), with source, [outer, indexed, inner], added to the indexed rows.
/// y may be base. The index is a column: one position of `inner` in one of `outer`.
template <class T, class Real>
struct AddRows {
  const T *base, *source;
  T* y;
  NamedRows named;
  Index inner;
  bool is_short;  ///< whether T is too short to add up in

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

/// Positions along one axis, with one index for each element. The index tensor is no larger than
/// the tensor, of `sizes`, along the other axes.
struct NamedElements {
  Integers indices;
  Index sizes[most_axes];    ///< of the whole tensor
  Index named[most_axes];    ///< of indices
  Index strides[most_axes];  ///< of indices, row-major
  int axes, axis;

  /// The position along the axis that element k of the indices has; -1: out of range.
  [[nodiscard]] STOWAGE_BODY Index place(Index k) const {
    Index index = indices.at(k);
    if (index < 0) index += sizes[axis];
    return index < sizes[axis] ? index : -1;
  }
};

/// Reads elements: y has the shape of the indices. The index is an element of y.
template <class Word>
struct GatherElements {
  const Word* x;
  Word* y;
  NamedElements named;
  Strided of_x;  ///< where y's elements begin in x along the axis
  Index stride;  ///< of the axis in x

  STOWAGE_BODY void operator()(Index i) const {
    const Index place = named.place(i);
    y[i] = place < 0 ? Word(0) : x[of_x.offset(i) + place * stride];
  }
};

/// Adds each element of source to the element of y that its index names, or sets that element (the
/// last one counts); the other elements are base's, or 0. y may be base. The index is an element of
/// y, which searches the indices on its own line.
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
