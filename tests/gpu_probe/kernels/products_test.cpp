// Matrix products as batches: how many a call has, and that together they compute the call, term by
// term.
#include "gpu_probe/kernels/rows/products.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

namespace stowage::test {
namespace {

struct Operands {
  Sizes a, b, y;
};

float at(const kernels::Matrices& matrices, std::int64_t batch, std::int64_t row,
         std::int64_t column) {
  const auto* const data = reinterpret_cast<const float*>(matrices.data);
  const std::int64_t in_row = matrices.transposed ? column : row;
  const std::int64_t in_column = matrices.transposed ? row : column;
  return data[batch * matrices.distance + in_row * matrices.columns + in_column];
}

/// Computes a product by its definition.
void run_plainly(const kernels::Product& p) {
  for (std::int64_t i = 0; i < p.batch; ++i) {
    for (std::int64_t row = 0; row < p.m; ++row) {
      for (std::int64_t column = 0; column < p.n; ++column) {
        double sum = 0;
        for (std::int64_t k = 0; k < p.k; ++k) {
          sum += static_cast<double>(at(p.a, i, row, k)) * at(p.b, i, k, column);
        }
        float& c =
            reinterpret_cast<float*>(p.c.data)[i * p.c.distance + row * p.c.columns + column];
        c = static_cast<float>(p.alpha * sum + (p.beta == 0 ? 0 : p.beta * c));
      }
    }
  }
}

Tensor counted(const Sizes& shape) {
  Tensor result = unwritten(shape);
  std::iota(result.floats.begin(), result.floats.end(), -3.0F);
  for (float& value : result.floats) value = static_cast<float>(static_cast<int>(value) % 7);
  return result;
}

std::size_t products_that_agree(const Operands& shapes, const Attributes& attributes) {
  Tensor a = counted(shapes.a), b = counted(shapes.b), y = unwritten(shapes.y);
  const std::vector<TensorArgument> reads{a.argument(), b.argument()}, writes{y.argument()};
  const auto products = kernels::products_of({.kernel = Kernel::matmul,
                                              .device = Device::cpu,
                                              .attributes = &attributes,
                                              .reads = reads,
                                              .writes = writes,
                                              .engine = {},
                                              .workspace = nullptr,
                                              .workspace_bytes = {}});
  std::ranges::for_each(products, run_plainly);
  Tensor expected = unwritten(shapes.y);
  run(Kernel::matmul, attributes, {&a, &b}, {&expected});
  CHECK(y.floats == expected.floats);  // whole numbers: no rounding
  return products.size();
}

}  // namespace

TEST_CASE("matrices that lie evenly apart are one batch") {
  CHECK(products_that_agree({{4, 3, 2, 5}, {4, 3, 5, 6}, {4, 3, 2, 6}}, {}) == 1);
  CHECK(products_that_agree({{12, 2, 5}, {5, 6}, {12, 2, 6}}, {}) == 1);
  CHECK(products_that_agree({{1, 2, 5}, {1, 5, 6}, {1, 2, 6}}, {}) == 1);
  Attributes transposed;
  transposed.set("transpose_a", true);
  transposed.set("transpose_b", true);
  transposed.set("alpha", 0.5);
  CHECK(products_that_agree({{3, 5, 2}, {3, 6, 5}, {3, 2, 6}}, transposed) == 1);
}

TEST_CASE("a broadcast operand of inner axes starts a batch each time") {
  CHECK(products_that_agree({{4, 3, 2, 5}, {4, 1, 5, 6}, {4, 3, 2, 6}}, {}) == 4);
  CHECK(products_that_agree({{4, 3, 2, 5}, {3, 5, 6}, {4, 3, 2, 6}}, {}) == 4);
}

TEST_CASE("what is summed over an axis is added product by product") {
  CHECK(products_that_agree({{3, 2, 5}, {3, 5, 6}, {2, 6}}, {}) == 3);
  CHECK(products_that_agree({{4, 3, 2, 5}, {4, 3, 5, 6}, {3, 2, 6}}, {}) == 4);
  CHECK(products_that_agree({{4, 3, 2, 5}, {4, 3, 5, 6}, {4, 1, 2, 6}}, {}) == 12);
}

TEST_CASE("a product of nothing is nothing, one of no terms is zero") {
  CHECK(products_that_agree({{0, 5}, {5, 6}, {0, 6}}, {}) == 0);
  CHECK(products_that_agree({{2, 0}, {0, 6}, {2, 6}}, {}) == 1);
  CHECK(products_that_agree({{0, 2, 5}, {0, 5, 6}, {0, 2, 6}}, {}) == 0);
}

}  // namespace stowage::test
