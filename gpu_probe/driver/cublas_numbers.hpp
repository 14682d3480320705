// Values of cuBLAS's enumerations and types of its functions, for programs built without its
// headers (cublas_api.h, cublasLt.h, library_types.h). Where the build finds those,
// declarations_check.cpp compares them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stowage::cublas {

inline constexpr int not_transposed = 0, transposed = 1;
inline constexpr int float32 = 0, float64 = 1, float16 = 2, bfloat16 = 14;
inline constexpr int compute_32 = 68, compute_32_fast_tf32 = 77, compute_64 = 70;
inline constexpr int default_algorithm = -1;

/// The type of cublasGemmEx. Arguments: the handle; whether a and b are transposed; m, n, k; alpha;
/// a with its type and leading dimension; b and c likewise, with beta before c; the format of sums;
/// the algorithm.
using GemmEx = int (*)(void*, int, int, int, int, int, const void*, const void*, int, int,
                       const void*, int, int, const void*, void*, int, int, int, int);

// cuBLASLt: products whose algorithm and workspace the caller chooses. Descriptors are opaque.

// Attributes of a product's descriptor, of a matrix's layout, and of the preferences for an
// algorithm.
inline constexpr int side_of_a = 3, side_of_b = 4;
inline constexpr int batch_count = 5, batch_distance = 6;
inline constexpr int most_workspace = 1;
inline constexpr std::array<int, 4> least_alignment{5, 6, 7, 8};  ///< of a, b, c, d

struct Algorithm {
  std::uint64_t opaque[8];
};

/// An algorithm that the heuristic proposes: cublasLtMatmulHeuristicResult_t.
struct Proposal {
  Algorithm algorithm;
  std::size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

/// FUNCTION(our name, the library's symbol, arguments). All return cuBLAS's status, 0 for success.
#define STOWAGE_CUBLAS_LT_FUNCTIONS(FUNCTION)                                                     \
  FUNCTION(create, cublasLtCreate, (void** handle))                                               \
  FUNCTION(destroy, cublasLtDestroy, (void* handle))                                              \
  FUNCTION(create_product, cublasLtMatmulDescCreate, (void** product, int sums, int factors))     \
  FUNCTION(destroy_product, cublasLtMatmulDescDestroy, (void* product))                           \
  FUNCTION(set_product, cublasLtMatmulDescSetAttribute,                                           \
           (void* product, int attribute, const void* value, std::size_t bytes))                  \
  FUNCTION(create_layout, cublasLtMatrixLayoutCreate,                                             \
           (void** layout, int type, std::uint64_t rows, std::uint64_t columns,                   \
            std::int64_t leading_dimension))                                                      \
  FUNCTION(destroy_layout, cublasLtMatrixLayoutDestroy, (void* layout))                           \
  FUNCTION(set_layout, cublasLtMatrixLayoutSetAttribute,                                          \
           (void* layout, int attribute, const void* value, std::size_t bytes))                   \
  FUNCTION(create_preference, cublasLtMatmulPreferenceCreate, (void** preference))                \
  FUNCTION(destroy_preference, cublasLtMatmulPreferenceDestroy, (void* preference))               \
  FUNCTION(set_preference, cublasLtMatmulPreferenceSetAttribute,                                  \
           (void* preference, int attribute, const void* value, std::size_t bytes))               \
  FUNCTION(propose, cublasLtMatmulAlgoGetHeuristic,                                               \
           (void* handle, void* product, void* a, void* b, void* c, void* d, void* preference,    \
            int wanted, stowage::cublas::Proposal* proposals, int* found))                        \
  FUNCTION(multiply, cublasLtMatmul,                                                              \
           (void* handle, void* product, const void* alpha, const void* a, void* layout_of_a,     \
            const void* b, void* layout_of_b, const void* beta, const void* c, void* layout_of_c, \
            void* d, void* layout_of_d, const stowage::cublas::Algorithm* algorithm,              \
            void* workspace, std::size_t workspace_bytes, void* stream))

struct LtFunctions {
#define STOWAGE_DECLARE(name, symbol, arguments) int(*name) arguments = nullptr;
  STOWAGE_CUBLAS_LT_FUNCTIONS(STOWAGE_DECLARE)
#undef STOWAGE_DECLARE
};

}  // namespace stowage::cublas
