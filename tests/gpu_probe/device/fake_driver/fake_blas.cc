// A cuBLAS on the host's memory, by its definition: column by column, in double, rounded once to
// the result's format. It knows one format for all three matrices, and keeps what it was asked
// last.
#include "tests/gpu_probe/device/fake_driver/fake_blas.hpp"

#include <cstddef>
#include <cstdlib>

#include "gpu_probe/kernels/bodies/floats.hpp"

namespace {

using stowage::body::FloatFormat;
using stowage::body::Floats;

FakeBlas state;

/// Of cuBLAS's number of it; false: none of those that it knows.
bool format_of(int number, FloatFormat& format) {
  switch (number) {
    case 0:
      return format = FloatFormat::float32, true;
    case 1:
      return format = FloatFormat::float64, true;
    case 2:
      return format = FloatFormat::float16, true;
    case 14:
      return format = FloatFormat::bfloat16, true;
    default:
      return false;
  }
}

struct Matrix {
  Floats elements;
  long long offset;
  int columns;
  bool transposed;
  [[nodiscard]] double at(int row, int column) const {
    return elements.at<double>(offset + (transposed ? static_cast<long>(row) * columns + column
                                                    : static_cast<long>(column) * columns + row));
  }
};

/// A factor in the format that is computed in.
double factor(const void* value, int compute) {
  return compute == 70 ? *static_cast<const double*>(value) : *static_cast<const float*>(value);
}

}  // namespace

extern "C" {

FakeBlas* fakeBlas() { return &state; }

int cublasCreate_v2(void** handle) {
  *handle = &state;
  ++state.handles;
  return state.create_fails;
}
int cublasDestroy_v2(void*) {
  --state.handles;
  return 0;
}
int cublasSetStream_v2(void*, void* stream) {
  state.stream = stream;
  state.workspace_bytes = 0;  // as cuBLAS does
  return 0;
}
int cublasSetWorkspace_v2(void*, void*, size_t bytes) {
  state.workspace_bytes = bytes;
  return 0;
}
int cublasGemmStridedBatchedEx(void*, int transpose_a, int transpose_b, int m, int n, int k,
                               const void* alpha, const void* a, int type_a, int columns_a,
                               long long distance_a, const void* b, int type_b, int columns_b,
                               long long distance_b, const void* beta, void* c, int type_c,
                               int columns_c, long long distance_c, int batch, int compute, int) {
  state.type = type_c;
  state.compute = compute;
  ++state.products;
  if (state.gemm_fails != 0) return state.gemm_fails;
  FloatFormat format{};
  if (type_a != type_c || type_b != type_c || !format_of(type_c, format)) return 15;
  if ((compute == 70) != (format == FloatFormat::float64)) return 15;  // not supported
  const double scale = factor(alpha, compute), old = factor(beta, compute);
  for (int i = 0; i < batch; ++i) {
    const Matrix of_a{{const_cast<void*>(a), format}, i * distance_a, columns_a, transpose_a == 1};
    const Matrix of_b{{const_cast<void*>(b), format}, i * distance_b, columns_b, transpose_b == 1};
    const Floats result{c, format};
    for (int column = 0; column < n; ++column) {
      for (int row = 0; row < m; ++row) {
        double sum = 0;
        for (int term = 0; term < k; ++term) sum += of_a.at(row, term) * of_b.at(term, column);
        const long long at = i * distance_c + static_cast<long>(column) * columns_c + row;
        result.set(at, scale * sum + (old == 0 ? 0 : old * result.at<double>(at)));
      }
    }
  }
  return 0;
}

}  // extern "C"
