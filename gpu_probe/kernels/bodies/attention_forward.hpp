// Attention's forward pass. The index is a tile of queries of one head, and a part of the result's
// columns.
//
// Goes over the keys tile by tile. Each row keeps the largest score so far, the sum of e^(score -
// largest), and the weighted sum of the rows of v. When a larger score comes, the sums so far are
// multiplied by e^(old largest - new largest).
#pragma once

#include "gpu_probe/kernels/bodies/attention.hpp"

namespace stowage::body {

/// The result of a query that sees no key (all its scores are minus infinity) is 0.
template <class T, class Real>
struct AttentionForward {
  AttentionOperands<T> operands;
  T* y;
  Floats logsumexp;  ///< [images, heads, queries]; without an address: not kept

  static constexpr Index side = tile_side<Real>;
  struct Memory {
    TilePair<Real> pair;
    Real weights[tile_area<Real>], sums[side * attention_width];
    Real largest[side], total[side], change[side];
  };

  STOWAGE_BODY void operator()(Index i, const Group& group) const {
    group.sharing<Memory>([&](Memory& memory) { run(i, group, memory); });
  }

 private:
  STOWAGE_BODY void run(Index i, const Group& group, Memory& memory) const {
    const AttentionShape& shape = operands.shape;
    const Index parts = attention_parts(shape.value_features);
    const Index tiles = (shape.queries + side - 1) / side;
    const Index tile = quotient(i, parts), line = quotient(tile, tiles);
    const Index image = quotient(line, shape.heads);
    ScoreTile at{image, line - image * shape.heads, (tile - line * tiles) * side, 0};
    const ColumnRange columns = columns_of_part(i - tile * parts, shape.value_features);
    for (Index row = group.rank(); row < side; row += group.size()) {
      memory.largest[row] = -infinity<Real>();
      memory.total[row] = 0;
    }
    each_sum(group, side, columns, memory.sums, [](Index, Index, Real& sum) { sum = 0; });
    for (; at.key < shape.keys && !is_hidden<Real>(shape, at); at.key += side) {
      weigh(group, at, columns, memory);
      add_weighted(
          group, memory.weights, as_it_is<Real>(), columns,
          [&](Index column) { return operands.keys(operands.v, shape.value_features, at, column); },
          memory.pair, memory.sums);
    }
    group.synchronize();
    const Index first = shape.query_row(at.image, at.head, at.query);
    write_sums(group, shape.queries - at.query, columns, memory.sums,
               y + first * shape.value_features, shape.value_features,
               [&](Index row) { return memory.total[row] == 0 ? Real(0) : 1 / memory.total[row]; });
    if (!logsumexp.is_there() || columns.first > 0) return;
    for (Index row = group.rank(); row < least(side, shape.queries - at.query);
         row += group.size()) {
      logsumexp.set(first + row, memory.largest[row] + body::log(memory.total[row]));
    }
  }

  /// Computes the weights of a tile relative to the largest score so far, and multiplies the
  /// earlier sums by what that largest score changes.
  STOWAGE_BODY void weigh(const Group& group, const ScoreTile& at, ColumnRange columns,
                          Memory& memory) const {
    const Index features = operands.shape.features;
    Real* const weights = memory.weights;
    multiply_rows(
        group, features,
        [&](Index column) { return operands.queries(operands.q, features, at, column); },
        [&](Index column) { return operands.keys(operands.k, features, at, column); }, memory.pair,
        weights);
    each_of_tile<Real>(group, [&](Index row, Index column) {
      Real& weight = weights[row * side + column];
      weight = operands.template score<Real>(at, row, column, weight);
    });
    group.synchronize();
    for (Index row = group.rank(); row < side; row += group.size()) {
      const Real before = memory.largest[row];
      Real largest = before;
      for (Index column = 0; column < side; ++column) {
        largest = Maximum{}(largest, weights[row * side + column]);
      }
      memory.largest[row] = largest;
      memory.change[row] = largest == before ? Real(1) : body::exp(before - largest);
    }
    group.synchronize();
    each_of_tile<Real>(group, [&](Index row, Index column) {
      Real& weight = weights[row * side + column];
      weight = weight == -infinity<Real>() ? Real(0) : body::exp(weight - memory.largest[row]);
    });
    each_sum(group, side, columns, memory.sums,
             [&](Index row, Index, Real& sum) { sum *= memory.change[row]; });
    group.synchronize();
    for (Index row = group.rank(); row < side; row += group.size()) {
      Real total = 0;
      for (Index column = 0; column < side; ++column) total += weights[row * side + column];
      memory.total[row] = memory.total[row] * memory.change[row] + total;
    }
    if (operands.shape.kept == 0) return;
    group.synchronize();
    each_of_tile<Real>(group, [&](Index row, Index column) {
      weights[row * side + column] *= operands.template kept<Real>(at, row, column);
    });
  }
};

}  // namespace stowage::body
