// Embedding: rows of a table by index, and the gradient of the table.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/group.hpp"
#include "gpu_probe/kernels/bodies/integers.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"

namespace stowage::body {

/// Forward. The index is a row of y. Where the table has no such row, y is NaN.
template <class T, class Real>
struct EmbeddingForward {
  Integers indices;
  Floats table;
  T* y;
  Index rows, width;

  STOWAGE_BODY void operator()(Index i, const Group& group) const {
    const Index row = indices.at(i);
    const bool is_there = row >= 0 && row < rows;
    for (Index j = group.rank(); j < width; j += group.size()) {
      store(y, i * width + j, is_there ? table.at<Real>(row * width + j) : not_a_number<Real>());
    }
  }
};

struct Smallest {
  template <class T>
  STOWAGE_BODY T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};

// The gradient of the table. Each row collects its own gradients, so that no two threads add to one
// element. An index out of range, which made NaN in forward, adds to no row.

/// For tables of few rows, each of which gets many gradients: the index is a row and a tile of
/// columns, and the group goes over all positions. Launched with rows * tiles_of(width) indices.
template <class T, class Real>
struct FewRowsBackward {
  Integers indices;
  const T* dy;
  Floats dw;
  Index count, width;
  Index padding;  ///< the row without a gradient; -1: none

  STOWAGE_BODY void operator()(Index i, const Group& group) const {
    const Index tiles = tiles_of(width), row = i / tiles;
    sum_columns<Real>(
        group, i % tiles, width, count,
        [&](Index position, Index j) {
          const bool is_its = indices.at(position) == row && row != padding;
          return is_its ? load<Real>(dy, position * width + j) : Real(0);
        },
        [&](Index j, Real sum) { dw.set(row * width + j, sum); });
  }
};

/// For any table, in the order of the indices. The index is a tile of rows.
///
/// The threads of a group search all indices for those in the tile, and process them in the order
/// of their keys: by row, and within a row by position. So a thread keeps a row's sum in registers,
/// for up to `columns` of its columns at a time.
template <class T, class Real>
struct EmbeddingBackward {
  Integers indices;
  const T* dy;
  Floats dw;
  Index count, rows, width, rows_a_tile;
  Index padding;  ///< the row without a gradient; -1: none

  STOWAGE_BODY void operator()(Index tile, const Group& group) const {
    const Index first = tile * rows_a_tile, last = least(rows, first + rows_a_tile);
#ifndef __CUDACC_RTC__
    if (group.size() == 1) return is_short() ? alone_in_sums(first, last) : alone(first, last);
#endif
    for (Index begin = 0; begin < width; begin += columns * group.size()) {
      collect(group, first, last, begin + group.rank());
    }
  }

 private:
  static constexpr Index columns = 4;

  /// Processes each thread's columns: from `column` on, in steps of the group's size.
  STOWAGE_BODY void collect(const Group& group, Index first, Index last, Index column) const {
    Index own = next_key(group, first, last, -1);
    Index key = group.combined(own, Smallest{});
    for (Index row = first; row < last; ++row) {
      Real sums[columns] = {};
      for (const Index end = (row - first + 1) * count; key < end;) {
        const T* const arrives = dy + (key - (row - first) * count) * width;
        for (Index c = 0, j = column; c < columns; ++c, j += group.size()) {
          if (j < width) sums[c] += load<Real>(arrives, j);
        }
        if (own == key) own = next_key(group, first, last, key);
        key = group.combined(own, Smallest{});
      }
      for (Index c = 0, j = column; c < columns; ++c, j += group.size()) {
        if (j < width) dw.set(row * width + j, sums[c]);
      }
    }
  }

  /// The smallest key after `key` among this thread's indices.
  STOWAGE_BODY Index next_key(const Group& group, Index first, Index last, Index key) const {
    Index next = (last - first) * count;
    for (Index i = group.rank(); i < count; i += group.size()) {
      const Index row = indices.at(i);
      if (row < first || row >= last || row == padding) continue;
      const Index candidate = (row - first) * count + i;
      if (candidate > key && candidate < next) next = candidate;
    }
    return next;
  }

#ifndef __CUDACC_RTC__
  /// Whether the format is too short to add up in.
  [[nodiscard]] bool is_short() const {
    return dw.format == FloatFormat::float16 || dw.format == FloatFormat::bfloat16;
  }

  /// For one thread: adds up row by row, in the order of the first index of each row.
  void alone_in_sums(Index first, Index last) const {
    constexpr Index wide = 512;
    for (Index j = first * width; j < last * width; ++j) dw.set(j, Real(0));
    for (Index i = 0; i < count; ++i) {
      const Index row = indices.at(i);
      if (row < first || row >= last || row == padding || is_among(row, i)) continue;
      for (Index begin = 0; begin < width; begin += wide) {
        const Index end = least(width, begin + wide);
        Real sums[wide] = {};
        for (Index k = i; k < count; ++k) {
          if (indices.at(k) != row) continue;
          for (Index j = begin; j < end; ++j) sums[j - begin] += load<Real>(dy, k * width + j);
        }
        for (Index j = begin; j < end; ++j) dw.set(row * width + j, sums[j - begin]);
      }
    }
  }
  /// Whether one of the indices before names the row.
  [[nodiscard]] bool is_among(Index row, Index indices_before) const {
    for (Index i = 0; i < indices_before; ++i) {
      if (indices.at(i) == row) return true;
    }
    return false;
  }

  /// For one thread: adds to the rows in memory, one index after the other.
  STOWAGE_BODY void alone(Index first, Index last) const {
    for (Index j = first * width; j < last * width; ++j) dw.set(j, Real(0));
    for (Index i = 0; i < count; ++i) {
      const Index row = indices.at(i);
      if (row < first || row >= last || row == padding) continue;
      for (Index j = 0; j < width; ++j) {
        const Index at = row * width + j;
        dw.set(at, dw.at<Real>(at) + load<Real>(dy, i * width + j));
      }
    }
  }
#endif
};

}  // namespace stowage::body
