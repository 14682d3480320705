// Compares our declarations of the CUDA driver's, cuBLAS's and NVRTC's functions with their
// headers, at build time. Built only where those headers are found.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <nvrtc.h>

#include <cstddef>
#include <type_traits>

#include "gpu_probe/driver/cublas_numbers.hpp"
#include "gpu_probe/driver/cuda_functions.hpp"
#include "gpu_probe/driver/nvrtc_functions.hpp"

namespace stowage {
namespace {

/// Whether two types are passed in the same way: both are pointers, or numbers of one size and
/// kind.
template <class Ours, class Theirs>
constexpr bool alike = std::is_pointer_v<Ours>
                           ? std::is_pointer_v<Theirs>
                           : sizeof(Ours) == sizeof(Theirs) && !std::is_pointer_v<Theirs> &&
                                 std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>;

template <class Ours, class Theirs>
constexpr bool same_call = false;
template <class Ours, class... OurArguments, class Theirs, class... TheirArguments>
constexpr bool same_call<Ours (*)(OurArguments...), Theirs (*)(TheirArguments...)> = [] {
  if constexpr (sizeof...(OurArguments) == sizeof...(TheirArguments)) {
    return sizeof(Ours) == sizeof(Theirs) && (alike<OurArguments, TheirArguments> && ...);
  } else {
    return false;
  }
}();

static_assert(same_call<int (*)(int, void*), int (*)(unsigned, char*)>);
static_assert(!same_call<int (*)(int), int (*)(long)>);
static_assert(!same_call<int (*)(void*), int (*)(long)>);
static_assert(!same_call<int (*)(float), int (*)(int)>);
static_assert(!same_call<int (*)(int), int (*)(int, int)>);

#define STOWAGE_COMPARE(name, symbol, arguments) \
  static_assert(same_call<decltype(CudaFunctions::name), decltype(&::symbol)>, #symbol);
STOWAGE_CUDA_QUERIES(STOWAGE_COMPARE)
STOWAGE_CUDA_CALLS(STOWAGE_COMPARE)
STOWAGE_CUDA_LANE_CALLS(STOWAGE_COMPARE)
STOWAGE_LATER_CUDA_FUNCTIONS(STOWAGE_COMPARE)
#undef STOWAGE_COMPARE

#define STOWAGE_COMPARE(name, symbol, arguments) \
  static_assert(same_call<decltype(NvrtcFunctions::name), decltype(&::symbol)>, #symbol);
STOWAGE_NVRTC_FUNCTIONS(STOWAGE_COMPARE)
#undef STOWAGE_COMPARE
static_assert(same_call<int (*)(int), int (*)(nvrtcResult)>);
static_assert(std::is_same_v<decltype(&::nvrtcGetErrorString), const char* (*)(nvrtcResult)>);

// The overload of cublasGemmEx that takes cuBLAS's own type for the format of sums.
using TheirGemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int,
                                       int, int, const void*, const void*, cudaDataType, int,
                                       const void*, cudaDataType, int, const void*, void*,
                                       cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
[[maybe_unused]] constexpr TheirGemmEx gemm = &::cublasGemmEx;
static_assert(same_call<cublas::GemmEx, TheirGemmEx>);
static_assert(cublas::not_transposed == CUBLAS_OP_N && cublas::transposed == CUBLAS_OP_T);
static_assert(cublas::float32 == CUDA_R_32F && cublas::float64 == CUDA_R_64F &&
              cublas::float16 == CUDA_R_16F && cublas::bfloat16 == CUDA_R_16BF);
static_assert(cublas::compute_32 == CUBLAS_COMPUTE_32F &&
              cublas::compute_32_fast_tf32 == CUBLAS_COMPUTE_32F_FAST_TF32 &&
              cublas::compute_64 == CUBLAS_COMPUTE_64F &&
              cublas::default_algorithm == CUBLAS_GEMM_DEFAULT);

#define STOWAGE_COMPARE(name, symbol, arguments) \
  static_assert(same_call<decltype(cublas::LtFunctions::name), decltype(&::symbol)>, #symbol);
STOWAGE_CUBLAS_LT_FUNCTIONS(STOWAGE_COMPARE)
#undef STOWAGE_COMPARE
static_assert(cublas::side_of_a == CUBLASLT_MATMUL_DESC_TRANSA &&
              cublas::side_of_b == CUBLASLT_MATMUL_DESC_TRANSB &&
              cublas::batch_count == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT &&
              cublas::batch_distance == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET &&
              cublas::most_workspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES &&
              cublas::least_alignment[0] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
              cublas::least_alignment[1] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES &&
              cublas::least_alignment[2] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES &&
              cublas::least_alignment[3] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(sizeof(cublas::Algorithm) == sizeof(cublasLtMatmulAlgo_t) &&
              sizeof(cublas::Proposal) == sizeof(cublasLtMatmulHeuristicResult_t) &&
              offsetof(cublas::Proposal, workspace) ==
                  offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) &&
              offsetof(cublas::Proposal, status) ==
                  offsetof(cublasLtMatmulHeuristicResult_t, state));

}  // namespace
}  // namespace stowage
