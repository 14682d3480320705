// A cuBLAS on the host's memory, by its definition: column by column, in double. It knows float32
// alone, and keeps what it was asked last.
#include "tests/gpu_probe/device/fake_driver/fake_blas.hpp"

#include <cstddef>
#include <cstdlib>

namespace {

FakeBlas state;

float at(const void* matrix, long long offset, int columns, bool transposed, int row, int column) {
  const auto* const data = static_cast<const float*>(matrix) + offset;
  return transposed ? data[static_cast<long>(row) * columns + column]
                    : data[static_cast<long>(column) * columns + row];
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
  if (type_a != 0 || type_b != 0 || type_c != 0) return 15;  // not supported
  const float scale = *static_cast<const float*>(alpha), old = *static_cast<const float*>(beta);
  for (int i = 0; i < batch; ++i) {
    auto* const result = static_cast<float*>(c) + i * distance_c;
    for (int column = 0; column < n; ++column) {
      for (int row = 0; row < m; ++row) {
        double sum = 0;
        for (int term = 0; term < k; ++term) {
          sum +=
              static_cast<double>(at(a, i * distance_a, columns_a, transpose_a == 1, row, term)) *
              at(b, i * distance_b, columns_b, transpose_b == 1, term, column);
        }
        float& value = result[static_cast<long>(column) * columns_c + row];
        value = static_cast<float>(scale * sum + (old == 0 ? 0 : old * value));
      }
    }
  }
  return 0;
}

}  // extern "C"
