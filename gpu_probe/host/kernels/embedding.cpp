// Rows of a table by index, and the gradient of the table.
#include <algorithm>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

/// Checks that y is [...indices, width] and w [rows, width].
std::int64_t row_width(const TensorArgument& indices, const TensorArgument& w,
                       const TensorArgument& y) {
  require(w.shape.size() == 2, "the table is {}, not a matrix", shape_text(w.shape));
  Sizes expected = indices.shape;
  expected.push_back(w.shape[1]);
  require_shape("the rows", y, expected);
  return w.shape[1];
}

std::int64_t checked_row(std::int64_t row, std::int64_t rows) {
  require(row >= 0 && row < rows, "index {} is not below {}", row, rows);
  return row;
}

}  // namespace

void embedding_forward(const KernelCall& call) {
  const auto &indices = call.reads[0], &w = call.reads[1], &y = call.writes[0];
  const std::int64_t width = row_width(indices, w, y);
  const std::int64_t* row = integers(indices);
  const float* table = floats(w);
  float* out = mutable_floats(y);
  for (std::int64_t i = 0; i < count(indices.shape); ++i) {
    std::copy_n(table + checked_row(row[i], w.shape[0]) * width, width, out + i * width);
  }
}

void embedding_backward(const KernelCall& call) {
  const auto &indices = call.reads[0], &dy = call.reads[1], &dw = call.writes[0];
  const std::int64_t width = row_width(indices, dw, dy);
  const std::int64_t padding = integer(call, "padding_index", -1);
  const std::int64_t* row = integers(indices);
  const float* gradient = floats(dy);
  float* table = mutable_floats(dw);
  std::fill_n(table, count(dw.shape), 0.0F);
  for (std::int64_t i = 0; i < count(indices.shape); ++i) {
    if (checked_row(row[i], dw.shape[0]) == padding) continue;
    for (std::int64_t j = 0; j < width; ++j) table[row[i] * width + j] += gradient[i * width + j];
  }
}

}  // namespace stowage::host
