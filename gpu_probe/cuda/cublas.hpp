// cuBLAS on a stream: the products of linear layers and matmul
// (gpu_probe/kernels/rows/products.hpp).
//
// Loaded when it is opened, without its headers. Sums are taken in float32 for float32 and the
// formats of 16 bits, in float64 for float64; TF32 where it is allowed, for float32 alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu_probe/driver/cublas_numbers.hpp"
#include "gpu_probe/kernels/rows/products.hpp"

namespace stowage {

class Cublas {
 public:
  /// From the first of the files that loads, in the current context. Errors: none loads (the
  /// loader's words for the last), it lacks a function, cublasCreate fails.
  [[nodiscard]] static Result<std::unique_ptr<Cublas>> open(const std::vector<std::string>& files);
  Cublas() = default;
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;
  ~Cublas();

  struct Settings {
    void* stream = nullptr;
    std::byte* workspace = nullptr;  ///< null: cuBLAS's own, which its handle holds
    Bytes workspace_bytes;
    bool tf32 = false;
  };
  /// Queues the product. Errors: the three matrices are not of one format, or c's is none of
  /// cuBLAS's; a call of cuBLAS fails.
  [[nodiscard]] Result<void> run(const kernels::Product& product, const Settings& settings) const;

 private:
  struct Functions {
    int (*create)(void** handle) = nullptr;
    int (*destroy)(void* handle) = nullptr;
    int (*set_stream)(void* handle, void* stream) = nullptr;
    int (*set_workspace)(void* handle, void* workspace, std::size_t bytes) = nullptr;
    cublas::GemmStridedBatchedEx gemm = nullptr;
  };
  Functions functions_;
  void* handle_ = nullptr;
};

}  // namespace stowage
