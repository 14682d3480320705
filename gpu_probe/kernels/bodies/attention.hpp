// What attention's two passes share: scaled dot product attention (Vaswani et al., 2017), computed
// tile by tile, so that the scores are never in memory as a whole (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022).
//
// q is [images, heads, queries, features]; k and v have heads / sharing heads and `keys` rows. For
// the backward pass each row of scores keeps its logsumexp.
#pragma once

#include "gpu_probe/kernels/bodies/dropout.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"
#include "gpu_probe/kernels/bodies/tile.hpp"

namespace stowage::body {

/// How many columns of a result a group sums at once. A wider result is divided into parts of the
/// index space, and the scores are computed again for each part.
#ifdef __CUDACC_RTC__
constexpr Index attention_width = 64;
#else
constexpr Index attention_width = 256;
#endif

struct AttentionShape {
  Index images, heads, sharing;  ///< sharing: query heads for each key head
  Index queries, keys, features, value_features;
  double scale;  ///< of the scores
  bool causal;   ///< query i sees keys 0 to i
  /// Strides of the bias along images, heads, queries and keys; 0 where it is repeated.
  Index bias_image, bias_head, bias_query, bias_key;
  MaskDraw draw;  ///< of dropout, by the index of a score
  float kept;     ///< the factor of a kept weight; 0: no dropout

  [[nodiscard]] STOWAGE_BODY Index query_row(Index image, Index head, Index query) const {
    return (image * heads + head) * queries + query;
  }
  [[nodiscard]] STOWAGE_BODY Index key_row(Index image, Index head, Index key) const {
    return (image * (heads / sharing) + head / sharing) * keys + key;
  }
};

/// Where a tile of scores begins: its first query and key.
struct ScoreTile {
  Index image, head, query, key;
};

/// Whether no query of the tile sees a key of it.
template <class Real>
STOWAGE_BODY bool is_hidden(const AttentionShape& shape, const ScoreTile& at) {
  return shape.causal && at.key > at.query + tile_side<Real> - 1;
}

/// The operands of a call.
template <class T>
struct AttentionOperands {
  const T *q, *k, *v, *bias;  ///< bias may be null
  AttentionShape shape;

  /// The rows of an operand from `row` on, and its columns from `column` on.
  [[nodiscard]] STOWAGE_BODY TilePart<T> queries(const T* data, Index features, const ScoreTile& at,
                                                 Index column) const {
    const Index row = shape.query_row(at.image, at.head, at.query);
    return {data + row * features + column, shape.queries - at.query, features - column, features};
  }
  [[nodiscard]] STOWAGE_BODY TilePart<T> keys(const T* data, Index features, const ScoreTile& at,
                                              Index column) const {
    const Index row = shape.key_row(at.image, at.head, at.key);
    return {data + row * features + column, shape.keys - at.key, features - column, features};
  }

  /// A score, from the product of its row of q with its row of k; minus infinity where the query
  /// does not see the key.
  template <class Real>
  [[nodiscard]] STOWAGE_BODY Real score(const ScoreTile& at, Index row, Index column,
                                        Real product) const {
    const Index query = at.query + row, key = at.key + column;
    if (query >= shape.queries || key >= shape.keys || (shape.causal && key > query)) {
      return -infinity<Real>();
    }
    const Real scaled = product * static_cast<Real>(shape.scale);
    if (bias == nullptr) return scaled;
    return scaled + load<Real>(bias, at.image * shape.bias_image + at.head * shape.bias_head +
                                         query * shape.bias_query + key * shape.bias_key);
  }
  /// The factor that dropout gives a weight: 0 or `kept`.
  template <class Real>
  [[nodiscard]] STOWAGE_BODY Real kept(const ScoreTile& at, Index row, Index column) const {
    if (shape.kept == 0) return 1;
    const Index line = shape.query_row(at.image, at.head, at.query + row);
    return shape.draw.keeps(line * shape.keys + at.key + column) ? static_cast<Real>(shape.kept)
                                                                 : Real(0);
  }
};

/// Tiles in shared memory that the factors of products are copied to.
template <class Real>
struct TilePair {
  Real left[tile_area<Real>], right[tile_area<Real>];
};

/// to = x y^T for the tile's queries and keys. `part_x(column)` and `part_y(column)` return their
/// features from that column on.
template <class Real, class PartX, class PartY>
STOWAGE_BODY void multiply_rows(const Group& group, Index features, PartX part_x, PartY part_y,
                                TilePair<Real>& pair, Real* to) {
  constexpr Index side = tile_side<Real>;
  for (Index i = group.rank(); i < tile_area<Real>; i += group.size()) to[i] = 0;
  for (Index column = 0; column < features; column += side) {
    read_tile(group, part_x(column), false, pair.left);
    read_tile(group, part_y(column), true, pair.right);
    add_product(group, pair.left, as_it_is<Real>(), pair.right, to, side);
  }
}

/// Columns [first, last) of a result: part number `part`, of attention_width columns each. There
/// may be none.
struct ColumnRange {
  Index first, last;

  /// The number of columns rounded up to whole tiles, which is the length of a row of sums.
  template <class Real>
  [[nodiscard]] STOWAGE_BODY Index row_length() const {
    return (last - first + tile_side<Real> - 1) / tile_side<Real> * tile_side<Real>;
  }
};
STOWAGE_BODY ColumnRange columns_of_part(Index part, Index columns) {
  const Index first = least(part * attention_width, columns);
  return {first, least(first + attention_width, columns)};
}
[[nodiscard]] STOWAGE_BODY Index attention_parts(Index columns) {
  return (columns + attention_width - 1) / attention_width;
}

/// sums += a x for these columns of x. `part(column)` returns the rows of x from that column on.
template <class Real, class Part>
STOWAGE_BODY void add_weighted(const Group& group, const Real* a, TileSteps steps,
                               ColumnRange columns, Part part, TilePair<Real>& pair, Real* sums) {
  const Index row_length = columns.row_length<Real>();
  for (Index column = columns.first; column < columns.last; column += tile_side<Real>) {
    read_tile(group, part(column), false, pair.right);
    add_product(group, a, steps, pair.right, sums + column - columns.first, row_length);
  }
}

/// Calls visit(row, column, sum) for each sum of `rows` rows, including those behind the last
/// column.
template <class Real, class Visit>
STOWAGE_BODY void each_sum(const Group& group, Index rows, ColumnRange columns, Real* sums,
                           Visit visit) {
  const Index row_length = columns.row_length<Real>();
  for (Index i = group.rank(); i < rows * row_length; i += group.size()) {
    const Index row = quotient(i, row_length);
    visit(row, columns.first + i - row * row_length, sums[i]);
  }
}

/// Stores `rows` rows of sums, multiplied by `factor(row)`, as rows of `features` elements from
/// `to` on; at most a tile's rows.
template <class Real, class T, class Factor>
STOWAGE_BODY void write_sums(const Group& group, Index rows, ColumnRange columns, Real* sums, T* to,
                             Index features, Factor factor) {
  each_sum(group, least(rows, tile_side<Real>), columns, sums,
           [&](Index row, Index column, Real& sum) {
             if (column < columns.last) store(to, row * features + column, sum * factor(row));
           });
}

}  // namespace stowage::body
