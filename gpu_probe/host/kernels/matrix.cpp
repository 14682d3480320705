// Matrix products with OpenBLAS. A product's terms are added up by one thread in a fixed order, so
// a result depends on the sizes and the number of threads alone.
#include <cblas.h>

#include <algorithm>

#include "gpu_probe/host/kernels/kernels.hpp"
#include "gpu_probe/kernels/rows/products.hpp"

namespace stowage::host {
namespace {

float* matrix_at(const Matrices& matrices, std::int64_t i) {
  require(matrices.type == DataType::float32, "a matrix is {} where OpenBLAS is given float32",
          to_string(matrices.type));
  return reinterpret_cast<float*>(matrices.data) + i * matrices.distance;
}

void run(const Product& p) {
  const auto beta = static_cast<float>(p.beta);
  for (std::int64_t i = 0; i < p.batch; ++i) {
    float* const c = matrix_at(p.c, i);
    if (p.k == 0) {
      std::transform(c, c + p.m * p.n, c, [beta](float x) { return beta == 0 ? 0 : beta * x; });
      continue;
    }
    cblas_sgemm(CblasRowMajor, p.a.transposed ? CblasTrans : CblasNoTrans,
                p.b.transposed ? CblasTrans : CblasNoTrans, static_cast<int>(p.m),
                static_cast<int>(p.n), static_cast<int>(p.k), static_cast<float>(p.alpha),
                matrix_at(p.a, i), static_cast<int>(p.a.columns), matrix_at(p.b, i),
                static_cast<int>(p.b.columns), beta, c, static_cast<int>(p.c.columns));
  }
}

void run_all(const KernelCall& call) {
  for (const Product& product : products_of(call)) run(product);
}

}  // namespace

void linear_forward(const KernelCall& call) {
  const std::vector<Product> products = products_of(call);
  for (const Product& p : products) {
    if (call.reads.size() < 3) break;
    const float* const bias = floats(call.reads[2]);
    for (std::int64_t row = 0; row < p.m; ++row) {
      std::copy(bias, bias + p.n, matrix_at(p.c, 0) + row * p.n);
    }
  }
  for (const Product& product : products) run(product);
}

void linear_backward_data(const KernelCall& call) { run_all(call); }
void linear_backward_filter(const KernelCall& call) { run_all(call); }
void matmul(const KernelCall& call) { run_all(call); }

}  // namespace stowage::host
