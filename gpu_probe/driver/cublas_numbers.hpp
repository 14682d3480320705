// cuBLAS's own numbers, without its headers (cublas_api.h, library_types.h). Compared with them at
// build time where they are found (declarations_check.cpp).
#pragma once

namespace stowage::cublas {

inline constexpr int not_transposed = 0, transposed = 1;
inline constexpr int float32 = 0, float64 = 1, float16 = 2, bfloat16 = 14;
inline constexpr int compute_32 = 68, compute_32_fast_tf32 = 77, compute_64 = 70;
inline constexpr int usual_algorithm = -1;

/// cublasGemmStridedBatchedEx: handle, sides, m, n, k, alpha, a, its type, leading dimension and
/// stride, b, beta, c, the batch, the format of sums, the algorithm.
using GemmStridedBatchedEx = int (*)(void*, int, int, int, int, int, const void*, const void*, int,
                                     int, long long, const void*, int, int, long long, const void*,
                                     void*, int, int, long long, int, int, int);
/// cublasGemmEx: the same without strides and batch.
using GemmEx = int (*)(void*, int, int, int, int, int, const void*, const void*, int, int,
                       const void*, int, int, const void*, void*, int, int, int, int);

}  // namespace stowage::cublas
