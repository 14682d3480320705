// Moves, repeats or makes elements, without computing. The index is an element of the result, or of
// a part of it.
#pragma once

#include "gpu_probe/kernels/bodies/alone.hpp"
#include "gpu_probe/kernels/bodies/group.hpp"
#include "gpu_probe/kernels/bodies/integers.hpp"
#include "gpu_probe/kernels/bodies/strided.hpp"

namespace stowage::body {

/// Copies x to y: y is row-major, x has other strides.
template <class Word>
struct Gather {
  const Word* x;
  Word* y;
  Strided of_x;
  STOWAGE_BODY void operator()(Index i) const { y[i] = x[of_x.offset(i)]; }
};

/// Copies rows of `width` elements, which lie `from_apart` and `to_apart` elements from each other.
/// The index is a row.
template <class Word>
struct MoveRows {
  const Word* from;
  Word* to;
  Index width, from_apart, to_apart;

  template <class Threads>
  STOWAGE_BODY void run(Index row, const Threads& threads) const {
    for (Index i = threads.rank(); i < width; i += threads.size()) {
      to[row * to_apart + i] = from[row * from_apart + i];
    }
  }
  STOWAGE_BODY void operator()(Index row) const { run(row, Alone{}); }
  STOWAGE_BODY void operator()(Index row, const Group& group) const { run(row, group); }
};

template <class Word>
struct Fill {
  Word* y;
  Word value;
  STOWAGE_BODY void operator()(Index i) const { y[i] = value; }
};

/// Writes 0, 1, ... to each row.
struct Iota {
  Integers y;
  Index width;
  STOWAGE_BODY void operator()(Index i) const { y.set(i, i % width); }
};

}  // namespace stowage::body
