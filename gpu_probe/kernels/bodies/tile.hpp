// Square tiles of matrices in a group's shared memory, and their products: the building blocks of
// attention.
//
// A tile is row-major and has `tile_side` elements in a row. Every sum is taken in the order of the
// depth, so it does not depend on the number of threads.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/group.hpp"

namespace stowage::body {

template <class Real>
constexpr Index tile_side = sizeof(Real) > 4 ? 16 : 32;
template <class Real>
constexpr Index tile_area = tile_side<Real>* tile_side<Real>;

// A thread computes a block at once, in registers: `block_rows` rows of `Lanes`, several of which
// fit into an SSE2 register of the host.
constexpr Index block_rows = 4;
#ifdef __CUDACC_RTC__
constexpr Index block_columns = 4;
template <class Real>
using Lanes = Real;
template <class Real>
STOWAGE_BODY Real lanes_at(const Real* from) {
  return *from;
}
template <class Real>
STOWAGE_BODY void put_lanes(Real lanes, Real* to) {
  *to = lanes;
}
#else
constexpr Index block_columns = 8;
template <class Real>
struct LanesOf {
  typedef Real type
      __attribute__((vector_size(16)));  // NOLINT(modernize-use-using): GCC takes no other form
};
template <class Real>
using Lanes = typename LanesOf<Real>::type;
template <class Real>
Lanes<Real> lanes_at(const Real* from) {
  Lanes<Real> lanes;
  memcpy(&lanes, from, sizeof lanes);
  return lanes;
}
template <class Real>
void put_lanes(const Lanes<Real>& lanes, Real* to) {
  memcpy(to, &lanes, sizeof lanes);
}
#endif

/// The layout of a left operand: element (row, depth) lies at row * row_step + depth * depth_step.
struct TileSteps {
  Index row, depth;
};
template <class Real>
STOWAGE_BODY TileSteps as_it_is() {
  return {tile_side<Real>, 1};
}
template <class Real>
STOWAGE_BODY TileSteps turned() {
  return {1, tile_side<Real>};
}

/// Adds the product a b over the depth of one tile to a block of c, whose rows lie `row_length`
/// apart. The tile's sum starts at 0 and is then added to c, so a long sum consists of short ones
/// and rounds less.
template <class Real>
STOWAGE_BODY void add_block(const Real* a, TileSteps steps, const Real* b, Real* c,
                            Index row_length) {
  constexpr Index width = sizeof(Lanes<Real>) / sizeof(Real), lanes = block_columns / width;
  Lanes<Real> sums[block_rows][lanes];
  for (Index i = 0; i < block_rows; ++i) {
    for (Index j = 0; j < lanes; ++j) sums[i][j] = Lanes<Real>{};
  }
  for (Index k = 0; k < tile_side<Real>; ++k) {
    Lanes<Real> right[lanes];
    for (Index j = 0; j < lanes; ++j) right[j] = lanes_at(b + k * tile_side<Real> + j * width);
    for (Index i = 0; i < block_rows; ++i) {
      const Real left = a[i * steps.row + k * steps.depth];
      for (Index j = 0; j < lanes; ++j) sums[i][j] += left * right[j];
    }
  }
  for (Index i = 0; i < block_rows; ++i) {
    for (Index j = 0; j < lanes; ++j) {
      Real* const to = c + i * row_length + j * width;
      put_lanes(lanes_at(to) + sums[i][j], to);
    }
  }
}

/// c += a b for tiles a and b; the rows of c lie `row_length` apart. The group synchronises before,
/// so that a and b are complete, and afterwards.
template <class Real>
STOWAGE_BODY void add_product(const Group& group, const Real* a, TileSteps steps, const Real* b,
                              Real* c, Index row_length) {
  constexpr Index side = tile_side<Real>, across = side / block_columns;
  group.synchronize();
  for (Index block = group.rank(); block < side / block_rows * across; block += group.size()) {
    const Index row = block / across * block_rows, column = block % across * block_columns;
    add_block(a + row * steps.row, steps, b + column, c + row * row_length + column, row_length);
  }
  group.synchronize();
}

/// Calls visit(row, column) for each element of a tile; neighbouring threads take neighbouring
/// columns.
template <class Real, class Visit>
STOWAGE_BODY void each_of_tile(const Group& group, Visit visit) {
  constexpr Index side = tile_side<Real>;
  const Index lanes = least(group.size(), side), rows = group.size() / lanes;
  for (Index row = group.rank() / lanes; row < side; row += rows) {
    for (Index column = group.rank() % lanes; column < side; column += lanes) visit(row, column);
  }
}

/// A part of a row-major matrix: `rows` rows, with `columns` elements from `data` on.
template <class T>
struct TilePart {
  const T* data;
  Index rows, columns, row_length;
};

/// Copies a part of at most a tile's size to a tile; the rest of the tile becomes 0. `turned`: rows
/// become columns.
template <class Real, class T>
STOWAGE_BODY void read_tile(const Group& group, const TilePart<T>& part, bool turned, Real* to) {
  constexpr Index side = tile_side<Real>;
  each_of_tile<Real>(group, [&](Index row, Index column) {
    const bool counts = row < part.rows && column < part.columns;
    const Real value = counts ? load<Real>(part.data, row * part.row_length + column) : Real(0);
    to[turned ? column * side + row : row * side + column] = value;
  });
}

}  // namespace stowage::body
