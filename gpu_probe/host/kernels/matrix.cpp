// Matrix products with OpenBLAS. A product's terms are added up by one thread in a fixed order, so
// a result depends on the sizes and the number of threads alone.
#include <cblas.h>

#include <algorithm>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

struct Matrix {
  const float* data;
  std::int64_t columns;  // as stored
  bool transposed = false;
};

/// c = alpha a b + beta c, with a [m, k], b [k, n] after their transpositions.
void product(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Matrix a, Matrix b,
             float beta, float* c) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    std::transform(c, c + m * n, c, [beta](float x) { return beta == 0 ? 0 : beta * x; });
    return;
  }
  cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
              b.transposed ? CblasTrans : CblasNoTrans, static_cast<int>(m), static_cast<int>(n),
              static_cast<int>(k), alpha, a.data, static_cast<int>(a.columns), b.data,
              static_cast<int>(b.columns), beta, c, static_cast<int>(n));
}

/// The sizes of a linear layer: x [rows, in], w [out, in], y [rows, out].
struct LinearSizes {
  std::int64_t rows, in, out;
};

LinearSizes linear_sizes(const TensorArgument& x, const TensorArgument& w,
                         const TensorArgument& y) {
  require(!x.shape.empty() && w.shape.size() == 2 && x.shape.size() == y.shape.size() &&
              x.shape.back() == w.shape[1] && y.shape.back() == w.shape[0] &&
              std::equal(x.shape.begin(), x.shape.end() - 1, y.shape.begin()),
          "input {}, weight {} and output {} do not belong together", shape_text(x.shape),
          shape_text(w.shape), shape_text(y.shape));
  return {count(x.shape, 0, x.shape.size() - 1), w.shape[1], w.shape[0]};
}

}  // namespace

void linear_forward(const KernelCall& call) {
  const auto &x = call.reads[0], &w = call.reads[1], &y = call.writes[0];
  const auto [rows, in, out] = linear_sizes(x, w, y);
  float* result = mutable_floats(y);
  const bool has_bias = call.reads.size() == 3;
  if (has_bias) {
    require_shape("bias", call.reads[2], {out});
    const float* bias = floats(call.reads[2]);
    for (std::int64_t row = 0; row < rows; ++row) std::copy(bias, bias + out, result + row * out);
  }
  product(rows, out, in, 1, {floats(x), in}, {floats(w), in, true}, has_bias ? 1 : 0, result);
}

void linear_backward_data(const KernelCall& call) {
  const auto &dy = call.reads[0], &w = call.reads[1], &dx = call.writes[0];
  const auto [rows, in, out] = linear_sizes(dx, w, dy);
  product(rows, in, out, 1, {floats(dy), out}, {floats(w), in}, 0, mutable_floats(dx));
}

void linear_backward_filter(const KernelCall& call) {
  const auto &x = call.reads[0], &dy = call.reads[1], &dw = call.writes[0];
  const auto [rows, in, out] = linear_sizes(x, dw, dy);
  product(out, in, rows, 1, {floats(dy), out, true}, {floats(x), in}, 0, mutable_floats(dw));
}

namespace {

/// The leading axes of `shape` (all but two), aligned right to `rank` of them; absent ones are 1.
Sizes leading(const Sizes& shape, std::size_t rank) {
  Sizes result(rank, 1);
  const std::size_t own = shape.size() - 2;
  std::copy_n(shape.begin(), own, result.begin() + static_cast<std::ptrdiff_t>(rank - own));
  return result;
}

/// Which matrix of an operand belongs to position `index` of the common leading axes.
std::int64_t matrix_at(const Sizes& own, const Sizes& common, std::int64_t index) {
  std::int64_t matrix = 0, stride = 1;
  for (std::size_t axis = common.size(); axis-- > 0;) {
    const std::int64_t at = index % common[axis];
    index /= common[axis];
    if (own[axis] != 1) matrix += at * stride;
    stride *= own[axis];
  }
  return matrix;
}

}  // namespace

void matmul(const KernelCall& call) {
  const auto &a = call.reads[0], &b = call.reads[1], &y = call.writes[0];
  require(a.shape.size() >= 2 && b.shape.size() >= 2 && y.shape.size() >= 2,
          "{}, {} and {} are not all matrices", shape_text(a.shape), shape_text(b.shape),
          shape_text(y.shape));
  const bool transpose_a = boolean(call, "transpose_a", false);
  const bool transpose_b = boolean(call, "transpose_b", false);
  const auto alpha = static_cast<float>(real(call, "alpha", 1));
  const std::size_t rank = std::max({a.shape.size(), b.shape.size(), y.shape.size()}) - 2;
  const Sizes lead_a = leading(a.shape, rank), lead_b = leading(b.shape, rank),
              lead_y = leading(y.shape, rank);
  Sizes common(rank);
  bool fits = true;
  for (std::size_t i = 0; i < rank; ++i) {
    common[i] = std::max(lead_a[i], lead_b[i]);
    for (const Sizes* lead : {&lead_a, &lead_b, &lead_y}) {
      fits = fits && ((*lead)[i] == 1 || (*lead)[i] == common[i]);
    }
  }
  const auto side = [](const TensorArgument& t, std::size_t from_end) {
    return t.shape[t.shape.size() - from_end];
  };
  const std::int64_t m = side(y, 2), n = side(y, 1), k = side(a, transpose_a ? 2 : 1);
  require(fits && side(a, transpose_a ? 1 : 2) == m && side(b, transpose_b ? 2 : 1) == n &&
              side(b, transpose_b ? 1 : 2) == k,
          "{}{} times {}{} does not give {}", shape_text(a.shape), transpose_a ? " transposed" : "",
          shape_text(b.shape), transpose_b ? " transposed" : "", shape_text(y.shape));
  std::vector<bool> begun(static_cast<std::size_t>(count(lead_y)), false);
  for (std::int64_t index = 0; index < count(common); ++index) {
    const std::int64_t target = matrix_at(lead_y, common, index);
    const auto slot = static_cast<std::size_t>(target);
    product(m, n, k, alpha,
            {floats(a) + matrix_at(lead_a, common, index) * m * k, side(a, 1), transpose_a},
            {floats(b) + matrix_at(lead_b, common, index) * k * n, side(b, 1), transpose_b},
            begun[slot] ? 1 : 0, mutable_floats(y) + target * m * n);
    begun[slot] = true;
  }
}

}  // namespace stowage::host
