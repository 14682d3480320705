#include "gpu_probe/kernels/rows/products.hpp"

#include <algorithm>

namespace stowage::kernels {
namespace {

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

Matrices matrix(const TensorArgument& tensor, std::int64_t columns, bool transposed = false) {
  return {any_floats(tensor).is_there() ? tensor.data : nullptr, tensor.type, columns, transposed};
}

std::vector<Product> one(const Product& product) {
  if (product.m == 0 || product.n == 0) return {};
  return {product};
}

std::vector<Product> linear_forward(const KernelCall& call) {
  const auto &x = call.reads[0], &w = call.reads[1], &y = call.writes[0];
  const LinearSizes size = linear_sizes(x, w, y);
  const bool has_bias = call.reads.size() == 3;
  if (has_bias) require_shape("bias", call.reads[2], {size.out});
  return one({.m = size.rows,
              .n = size.out,
              .k = size.in,
              .beta = has_bias ? 1.0 : 0.0,
              .a = matrix(x, size.in),
              .b = matrix(w, size.in, true),
              .c = matrix(y, size.out)});
}

std::vector<Product> linear_backward_data(const KernelCall& call) {
  const auto &dy = call.reads[0], &w = call.reads[1], &dx = call.writes[0];
  const LinearSizes size = linear_sizes(dx, w, dy);
  return one({.m = size.rows,
              .n = size.in,
              .k = size.out,
              .a = matrix(dy, size.out),
              .b = matrix(w, size.in),
              .c = matrix(dx, size.in)});
}

std::vector<Product> linear_backward_filter(const KernelCall& call) {
  const auto &x = call.reads[0], &dy = call.reads[1], &dw = call.writes[0];
  const LinearSizes size = linear_sizes(x, dw, dy);
  return one({.m = size.out,
              .n = size.in,
              .k = size.rows,
              .a = matrix(dy, size.out, true),
              .b = matrix(x, size.in),
              .c = matrix(dw, size.in)});
}

/// All but the last two axes of `shape`, aligned right to `rank` axes; missing ones are 1.
Sizes leading(const Sizes& shape, std::size_t rank) {
  Sizes result(rank, 1);
  const std::size_t own = shape.size() - 2;
  std::copy_n(shape.begin(), own, result.begin() + static_cast<std::ptrdiff_t>(rank - own));
  return result;
}

/// The number of an operand's matrix for position `index` of the common leading axes.
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

std::byte* element(const Matrices& matrices, std::int64_t i) {
  return matrices.data + element_size(matrices.type) * i;
}

/// The offsets of one product's matrices, in elements.
struct Offsets {
  std::int64_t a, b, c;
};

/// Adds `next` to the batch if its matrices have the same distance from the last ones as those have
/// from each other; returns whether it did.
bool joins(Product& batch, const Offsets& first, const Offsets& last, const Offsets& next,
           double beta) {
  const Offsets apart{next.a - last.a, next.b - last.b, next.c - last.c};
  if (apart.c <= 0 || apart.a < 0 || apart.b < 0 || batch.beta != beta) return false;
  if (batch.batch > 1) {
    if (apart.a != batch.a.distance || apart.b != batch.b.distance || apart.c != batch.c.distance) {
      return false;
    }
  } else {
    batch.a.distance = next.a - first.a;
    batch.b.distance = next.b - first.b;
    batch.c.distance = next.c - first.c;
  }
  ++batch.batch;
  return true;
}

// Checks that the leading axes of both operands broadcast to the result's, with 1 where an axis is
// summed over, and that rows and columns fit. Makes a product for each position of the leading
// axes, and joins products at equal distances into batches. The first product of a result's matrix
// sets it (beta 0); later ones add to it (beta 1).
std::vector<Product> matmul(const KernelCall& call) {
  const auto &a = call.reads[0], &b = call.reads[1], &y = call.writes[0];
  require(a.shape.size() >= 2 && b.shape.size() >= 2 && y.shape.size() >= 2,
          "{}, {} and {} are not all matrices", shape_text(a.shape), shape_text(b.shape),
          shape_text(y.shape));
  const bool transpose_a = boolean(call, "transpose_a", false);
  const bool transpose_b = boolean(call, "transpose_b", false);
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
  const Product whole{.m = m,
                      .n = n,
                      .k = k,
                      .alpha = real(call, "alpha", 1),
                      .a = matrix(a, side(a, 1), transpose_a),
                      .b = matrix(b, side(b, 1), transpose_b),
                      .c = matrix(y, n)};
  std::vector<Product> products;
  if (m == 0 || n == 0) return products;
  std::vector<bool> begun(static_cast<std::size_t>(count(lead_y)), false);
  Offsets first{}, last{};
  for (std::int64_t index = 0; index < count(common); ++index) {
    const std::int64_t target = matrix_at(lead_y, common, index);
    const auto slot = static_cast<std::size_t>(target);
    const Offsets next{matrix_at(lead_a, common, index) * m * k,
                       matrix_at(lead_b, common, index) * k * n, target * m * n};
    const double beta = begun[slot] ? 1 : 0;
    begun[slot] = true;
    if (products.empty() || !joins(products.back(), first, last, next, beta)) {
      Product product = whole;
      product.beta = beta;
      product.a.data = element(whole.a, next.a);
      product.b.data = element(whole.b, next.b);
      product.c.data = element(whole.c, next.c);
      products.push_back(product);
      first = next;
    }
    last = next;
  }
  return products;
}

}  // namespace

bool is_product(Kernel kernel) {
  return kernel == Kernel::linear_forward || kernel == Kernel::linear_backward_data ||
         kernel == Kernel::linear_backward_filter || kernel == Kernel::matmul;
}

std::vector<Product> products_of(const KernelCall& call) {
  switch (call.kernel) {
    case Kernel::linear_forward:
      return linear_forward(call);
    case Kernel::linear_backward_data:
      return linear_backward_data(call);
    case Kernel::linear_backward_filter:
      return linear_backward_filter(call);
    default:
      return matmul(call);
  }
}

}  // namespace stowage::kernels
