// Attention's backward pass. The weights are computed again, tile by tile, from q, k and the
// logsumexp of the rows. With P the weights, M the factors of dropout, and dP = dy v^T:
//
//   dv = (P M)^T dy    dS = P (M dP - rowsum(dy y))    dq = scale dS k    dk = scale dS^T q
//
// The gradient of the bias is dS, summed over the axes along which the bias is repeated. One group
// writes each result, so nothing depends on the order in which groups run.
#pragma once

#include "gpu_probe/kernels/bodies/attention.hpp"

namespace stowage::body {

/// The part that the three bodies below share.
template <class T, class Real>
struct AttentionGradients {
  AttentionOperands<T> operands;
  const T *y, *dy;
  Floats logsumexp;

  static constexpr Index side = tile_side<Real>;
  struct Memory {
    TilePair<Real> pair;
    Real weights[tile_area<Real>];    ///< P M
    Real gradients[tile_area<Real>];  ///< dS
    Real logsumexp[side], row_sum[side];
  };

  /// Reads the logsumexp of the tile's queries, and computes their sums of dy y.
  STOWAGE_BODY void take_queries(const Group& group, const ScoreTile& at, Memory& memory) const {
    const AttentionShape& shape = operands.shape;
    const Index first = shape.query_row(at.image, at.head, at.query);
    for (Index row = group.rank(); row < side; row += group.size()) {
      const bool counts = at.query + row < shape.queries;
      memory.row_sum[row] = counts ? row_sum((first + row) * shape.value_features) : Real(0);
      memory.logsumexp[row] = counts ? logsumexp.at<Real>(first + row) : Real(0);
    }
  }

  /// Computes the weights and gradients of a tile. Precondition: take_queries() for its queries.
  STOWAGE_BODY void make(const Group& group, const ScoreTile& at, Memory& memory) const {
    const Index features = operands.shape.features, values = operands.shape.value_features;
    const auto queries_of = [&](const T* data, Index length) {
      return [this, data, length, &at](Index column) {
        return operands.queries(data, length, at, column);
      };
    };
    const auto keys_of = [&](const T* data, Index length) {
      return [this, data, length, &at](Index column) {
        return operands.keys(data, length, at, column);
      };
    };
    multiply_rows(group, features, queries_of(operands.q, features), keys_of(operands.k, features),
                  memory.pair, memory.weights);
    multiply_rows(group, values, queries_of(dy, values), keys_of(operands.v, values), memory.pair,
                  memory.gradients);
    each_of_tile<Real>(group, [&](Index row, Index column) {
      Real& weight = memory.weights[row * side + column];
      Real& gradient = memory.gradients[row * side + column];
      const Real score = operands.template score<Real>(at, row, column, weight);
      if (score == -infinity<Real>()) {
        weight = gradient = 0;
        return;
      }
      const Real p = body::exp(score - memory.logsumexp[row]);
      const Real kept = operands.template kept<Real>(at, row, column);
      weight = p * kept;
      gradient = p * (kept * gradient - memory.row_sum[row]);
    });
  }

 private:
  /// The sum of dy y over the row that begins at an element: summed in short sums, as in a product
  /// of tiles.
  [[nodiscard]] STOWAGE_BODY Real row_sum(Index begin) const {
    const Index end = begin + operands.shape.value_features;
    Real sum = 0;
    for (Index first = begin; first < end; first += side) {
      Real part = 0;
      for (Index i = first; i < least(first + side, end); ++i) {
        part += load<Real>(y, i) * load<Real>(dy, i);
      }
      sum += part;
    }
    return sum;
  }
};

/// The gradient of q. The index is a tile of queries of one head, and a part of dq's columns.
template <class T, class Real>
struct AttentionBackwardQuery {
  AttentionGradients<T, Real> from;
  T* dq;

  static constexpr Index side = tile_side<Real>;
  struct Memory {
    typename AttentionGradients<T, Real>::Memory tile;
    Real sums[side * attention_width];
  };

  STOWAGE_BODY void operator()(Index i, const Group& group) const {
    group.sharing<Memory>([&](Memory& memory) { run(i, group, memory); });
  }

 private:
  STOWAGE_BODY void run(Index i, const Group& group, Memory& memory) const {
    const AttentionShape& shape = from.operands.shape;
    const Index features = shape.features, parts = attention_parts(features);
    const Index tiles = (shape.queries + side - 1) / side;
    const Index tile = quotient(i, parts), line = quotient(tile, tiles);
    const Index image = quotient(line, shape.heads);
    ScoreTile at{image, line - image * shape.heads, (tile - line * tiles) * side, 0};
    const ColumnRange columns = columns_of_part(i - tile * parts, features);
    each_sum(group, side, columns, memory.sums, [](Index, Index, Real& sum) { sum = 0; });
    from.take_queries(group, at, memory.tile);
    for (; at.key < shape.keys && !is_hidden<Real>(shape, at); at.key += side) {
      from.make(group, at, memory.tile);
      add_weighted(
          group, memory.tile.gradients, as_it_is<Real>(), columns,
          [&](Index column) { return from.operands.keys(from.operands.k, features, at, column); },
          memory.tile.pair, memory.sums);
    }
    group.synchronize();
    write_sums(group, shape.queries - at.query, columns, memory.sums,
               dq + shape.query_row(at.image, at.head, at.query) * features, features,
               [&](Index) { return static_cast<Real>(shape.scale); });
  }
};

/// The gradients of k and v. The index is a tile of keys of one key head, and a part of the columns
/// of dk and of dv.
template <class T, class Real>
struct AttentionBackwardKey {
  AttentionGradients<T, Real> from;
  T *dk, *dv;

  static constexpr Index side = tile_side<Real>;
  struct Memory {
    typename AttentionGradients<T, Real>::Memory tile;
    Real key_sums[side * attention_width], value_sums[side * attention_width];
  };

  STOWAGE_BODY void operator()(Index i, const Group& group) const {
    group.sharing<Memory>([&](Memory& memory) { run(i, group, memory); });
  }

 private:
  STOWAGE_BODY void run(Index i, const Group& group, Memory& memory) const {
    const AttentionShape& shape = from.operands.shape;
    const Index key_heads = quotient(shape.heads, shape.sharing);
    const Index parts = attention_parts(most(shape.features, shape.value_features));
    const Index tiles = (shape.keys + side - 1) / side;
    const Index tile = quotient(i, parts), line = quotient(tile, tiles);
    const Index image = quotient(line, key_heads);
    const Index first_head = (line - image * key_heads) * shape.sharing;
    ScoreTile at{image, first_head, 0, (tile - line * tiles) * side};
    const ColumnRange of_key = columns_of_part(i - tile * parts, shape.features);
    const ColumnRange of_value = columns_of_part(i - tile * parts, shape.value_features);
    const auto zero = [](Index, Index, Real& sum) { sum = 0; };
    each_sum(group, side, of_key, memory.key_sums, zero);
    each_sum(group, side, of_value, memory.value_sums, zero);
    for (; at.head < first_head + shape.sharing; ++at.head) {
      for (at.query = 0; at.query < shape.queries; at.query += side) {
        if (is_hidden<Real>(shape, at)) continue;
        add(group, at, of_key, of_value, memory);
      }
    }
    group.synchronize();
    at.head = first_head;
    const Index first = shape.key_row(at.image, at.head, at.key), rows = shape.keys - at.key;
    write_sums(group, rows, of_key, memory.key_sums, dk + first * shape.features, shape.features,
               [&](Index) { return static_cast<Real>(shape.scale); });
    write_sums(group, rows, of_value, memory.value_sums, dv + first * shape.value_features,
               shape.value_features, [](Index) { return Real(1); });
  }

  STOWAGE_BODY void add(const Group& group, const ScoreTile& at, ColumnRange of_key,
                        ColumnRange of_value, Memory& memory) const {
    const AttentionOperands<T>& operands = from.operands;
    const Index features = operands.shape.features, values = operands.shape.value_features;
    from.take_queries(group, at, memory.tile);
    from.make(group, at, memory.tile);
    add_weighted(
        group, memory.tile.weights, turned<Real>(), of_value,
        [&](Index column) { return operands.queries(from.dy, values, at, column); },
        memory.tile.pair, memory.value_sums);
    add_weighted(
        group, memory.tile.gradients, turned<Real>(), of_key,
        [&](Index column) { return operands.queries(operands.q, features, at, column); },
        memory.tile.pair, memory.key_sums);
  }
};

/// The gradient of a bias, in the bias's own shape. The index is a tile of its last two axes; a
/// repeated axis has one row or column.
template <class T, class Real>
struct AttentionBackwardBias {
  AttentionGradients<T, Real> from;
  T* d_bias;
  Index images, heads, queries, keys;  ///< the bias's extents

  static constexpr Index side = tile_side<Real>;
  struct Memory {
    typename AttentionGradients<T, Real>::Memory tile;
    Real sums[tile_area<Real>];
  };

  STOWAGE_BODY void operator()(Index i, const Group& group) const {
    group.sharing<Memory>([&](Memory& memory) { run(i, group, memory); });
  }

 private:
  /// The positions [begin, end) that one index of a bias's axis covers.
  struct Span {
    Index first, last;
  };
  STOWAGE_BODY static Span span(Index at, Index extent, Index whole, Index step) {
    return extent == whole ? Span{at, least(at + step, whole)} : Span{0, whole};
  }

  STOWAGE_BODY void run(Index i, const Group& group, Memory& memory) const {
    const AttentionShape& shape = from.operands.shape;
    const Index across = (keys + side - 1) / side, down = (queries + side - 1) / side;
    const Index tile_row = quotient(i, across), plane = quotient(tile_row, down);
    const Index image = quotient(plane, heads), head = plane - image * heads;
    const Index row = (tile_row - plane * down) * side, column = (i - tile_row * across) * side;
    const Span of_images = span(image, images, shape.images, 1);
    const Span of_heads = span(head, heads, shape.heads, 1);
    const Span of_queries = span(row, queries, shape.queries, side);
    const Span of_keys = span(column, keys, shape.keys, side);
    for (Index e = group.rank(); e < tile_area<Real>; e += group.size()) memory.sums[e] = 0;
    ScoreTile at{of_images.first, 0, 0, 0};
    for (; at.image < of_images.last; ++at.image) {
      for (at.head = of_heads.first; at.head < of_heads.last; ++at.head) {
        for (at.query = of_queries.first; at.query < of_queries.last; at.query += side) {
          for (at.key = of_keys.first; at.key < of_keys.last; at.key += side) {
            add(group, at, memory);
          }
        }
      }
    }
    write(group, plane * queries + row, column, memory.sums);
  }

  STOWAGE_BODY void add(const Group& group, const ScoreTile& at, Memory& memory) const {
    if (is_hidden<Real>(from.operands.shape, at)) return;
    from.take_queries(group, at, memory.tile);
    from.make(group, at, memory.tile);
    group.synchronize();
    for (Index e = group.rank(); e < tile_area<Real>; e += group.size()) {
      memory.sums[e] += memory.tile.gradients[e];
    }
    group.synchronize();
  }

  /// Writes a tile's sums. If the bias has one row or one column, the tile's rows or columns are
  /// added up.
  STOWAGE_BODY void write(const Group& group, Index first, Index column, const Real* sums) const {
    const AttentionShape& shape = from.operands.shape;
    const Index row_of_plane = first % queries;
    const bool one_row = queries != shape.queries, one_column = keys != shape.keys;
    const Index rows = least(side, queries - row_of_plane), columns = least(side, keys - column);
    group.synchronize();
    each_of_tile<Real>(group, [&](Index r, Index c) {
      if (r >= rows || c >= columns) return;
      Real sum = 0;
      for (Index x = one_row ? 0 : r; x < (one_row ? side : r + 1); ++x) {
        for (Index z = one_column ? 0 : c; z < (one_column ? side : c + 1); ++z) {
          sum += sums[x * side + z];
        }
      }
      store(d_bias, (first + r) * keys + column + c, sum);
    });
  }
};

}  // namespace stowage::body
