// Embedding: rows of a table by index, and the gradient of the table.
#include "gpu_probe/kernels/bodies/embedding.hpp"

#include <algorithm>

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/integers.hpp"

namespace stowage::kernels {
namespace {

/// Checks that y is [...indices, width] and w is [rows, width], and, where they can be read, the
/// indices.
std::int64_t row_width(const TensorArgument& indices, const TensorArgument& w,
                       const TensorArgument& y, Arithmetic arithmetic) {
  require(w.shape.size() == 2, "the table is {}, not a matrix", shape_text(w.shape));
  Sizes expected = indices.shape;
  expected.push_back(w.shape[1]);
  require_shape("the rows", y, expected);
  if (arithmetic == Arithmetic::host) {
    const body::Integers numbers = any_integers(indices);
    for (std::int64_t i = 0; i < count(indices.shape); ++i) {
      const std::int64_t row = numbers.at(i);
      require(row >= 0 && row < w.shape[0], "index {} is not below {}", row, w.shape[0]);
    }
  }
  return w.shape[1];
}

}  // namespace

Launches embedding_forward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &indices = call.reads[0], &w = call.reads[1], &y = call.writes[0];
  const std::int64_t width = row_width(indices, w, y, arithmetic);
  return {in_formats(y.type, arithmetic, [&]<class T, class Real>() {
    return each_group(body::EmbeddingForward<T, Real>{any_integers(indices), any_floats(w),
                                                      elements<T>(y), w.shape[0], width},
                      count(indices.shape), threads_for(width));
  })};
}

Launches embedding_backward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &indices = call.reads[0], &dy = call.reads[1], &dw = call.writes[0];
  const std::int64_t width = row_width(indices, dw, dy, arithmetic);
  const std::int64_t padding = integer(call, "padding_index", -1);
  const std::int64_t positions = count(indices.shape), rows = dw.shape[0];
  const body::Integers numbers = any_integers(indices);
  const body::Floats gradient = any_floats(dw);
  constexpr std::int64_t few_rows = 64, busy = 256, largest_tile = 32;
  return {in_formats(dy.type, arithmetic, [&]<class T, class Real>() {
    if (arithmetic == Arithmetic::device && rows <= few_rows) {
      return each_group(body::FewRowsBackward<T, Real>{numbers, elements<T>(dy), gradient,
                                                       positions, width, padding},
                        rows * body::tiles_of(width), body::largest_group);
    }
    // The host goes over the indices once. A device goes over them once for each tile, with enough
    // tiles and threads to keep it busy.
    const std::int64_t tile = arithmetic == Arithmetic::host
                                  ? std::max<std::int64_t>(rows, 1)
                                  : std::clamp<std::int64_t>(rows / busy, 1, largest_tile);
    const std::int64_t threads = positions >= std::int64_t{8} * body::largest_group
                                     ? body::largest_group
                                     : threads_for(std::max(width, positions));
    return each_group(body::EmbeddingBackward<T, Real>{numbers, elements<T>(dy), gradient,
                                                       positions, rows, width, tile, padding},
                      (rows + tile - 1) / tile, threads);
  })};
}

}  // namespace stowage::kernels
