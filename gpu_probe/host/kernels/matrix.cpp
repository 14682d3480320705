// Matrix products by OpenBLAS. One thread adds up the terms of a result in a fixed order, so a
// result depends only on the sizes and the number of threads.
#include <cblas.h>

#include <algorithm>
#include <cstring>

#include "gpu_probe/host/kernels/single_floats.hpp"
#include "gpu_probe/kernels/rows/products.hpp"

namespace stowage::host {
namespace {

std::byte* matrix_at(const Matrices& matrices, std::int64_t i) {
  return matrices.data + i * matrices.distance * element_size(matrices.type);
}

CBLAS_TRANSPOSE side(const Matrices& matrices) {
  return matrices.transposed ? CblasTrans : CblasNoTrans;
}

void gemm(const Product& p, const float* a, const float* b, float* c) {
  cblas_sgemm(CblasRowMajor, side(p.a), side(p.b), static_cast<int>(p.m), static_cast<int>(p.n),
              static_cast<int>(p.k), static_cast<float>(p.alpha), a, static_cast<int>(p.a.columns),
              b, static_cast<int>(p.b.columns), static_cast<float>(p.beta), c,
              static_cast<int>(p.c.columns));
}

void gemm(const Product& p, const double* a, const double* b, double* c) {
  cblas_dgemm(CblasRowMajor, side(p.a), side(p.b), static_cast<int>(p.m), static_cast<int>(p.n),
              static_cast<int>(p.k), p.alpha, a, static_cast<int>(p.a.columns), b,
              static_cast<int>(p.b.columns), p.beta, c, static_cast<int>(p.c.columns));
}

/// Computes c = alpha a b + beta c for one product of the batch.
template <class T>
void multiply(const Product& p, const T* a, const T* b, T* c) {
  if (p.k > 0) return gemm(p, a, b, c);
  const auto beta = static_cast<T>(p.beta);
  std::transform(c, c + p.m * p.n, c, [beta](T x) { return beta == 0 ? T(0) : beta * x; });
}

template <class T>
void run_as(const Product& p) {
  const auto at = [](const Matrices& matrices, std::int64_t i) {
    return reinterpret_cast<T*>(matrix_at(matrices, i));
  };
  for (std::int64_t i = 0; i < p.batch; ++i) multiply(p, at(p.a, i), at(p.b, i), at(p.c, i));
}

/// Computes a 16-bit product in float32. The c that is added to is widened and rounded again for
/// each product of the batch.
void run_widened(const Product& p) {
  std::vector<float> a, b, c;
  const auto load = [](const Matrices& matrices, std::int64_t i, std::int64_t elements,
                       std::vector<float>& values) {
    if (i > 0 && matrices.distance == 0) return;
    values = widened(matrix_at(matrices, i), matrices.type, elements);
  };
  for (std::int64_t i = 0; i < p.batch; ++i) {
    load(p.a, i, p.m * p.k, a);
    load(p.b, i, p.k * p.n, b);
    c = widened(matrix_at(p.c, i), p.c.type, p.m * p.n);
    multiply(p, a.data(), b.data(), c.data());
    store_rounded(c, matrix_at(p.c, i), p.c.type);
  }
}

void run(const Product& p) {
  require(p.a.type == p.c.type && p.b.type == p.c.type,
          "{} times {} to {} where OpenBLAS is given one format", to_string(p.a.type),
          to_string(p.b.type), to_string(p.c.type));
  switch (p.c.type) {
    case DataType::float32:
      return run_as<float>(p);
    case DataType::float64:
      return run_as<double>(p);
    default:
      return run_widened(p);
  }
}

void run_all(const KernelCall& call) {
  for (const Product& product : products_of(call)) run(product);
}

/// Sets each row of y to the bias, in y's format.
void fill_rows(const TensorArgument& y, const TensorArgument& bias) {
  const std::int64_t width = y.shape.back(), row_bytes = width * element_size(y.type);
  std::vector<std::byte> row(static_cast<std::size_t>(row_bytes));
  body::Floats to = any_floats(y);
  to.data = row.data();
  const body::Floats from = any_floats(bias);
  for (std::int64_t i = 0; i < width; ++i) to.set(i, from.at<double>(i));
  for (std::int64_t i = 0; i < count(y.shape) / width; ++i) {
    std::memcpy(y.data + i * row_bytes, row.data(), row.size());
  }
}

}  // namespace

void linear_forward(const KernelCall& call) {
  const std::vector<Product> products = products_of(call);
  if (!products.empty() && call.reads.size() == 3) fill_rows(call.writes[0], call.reads[2]);
  for (const Product& product : products) run(product);
}

void linear_backward_data(const KernelCall& call) { run_all(call); }
void linear_backward_filter(const KernelCall& call) { run_all(call); }
void matmul(const KernelCall& call) { run_all(call); }

}  // namespace stowage::host
