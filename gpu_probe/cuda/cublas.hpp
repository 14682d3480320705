// cuBLAS on a stream: the products of linear layers and matmul
// (gpu_probe/kernels/rows/products.hpp).
//
// By cuBLASLt, which takes no memory of its own: an algorithm is asked for that is content with the
// plan's workspace, down to none. (cublasGemm's handle allocates a workspace beside the arena.) The
// first proposal is taken, once for each form of product.
//
// Loaded when it is opened, without its headers. Sums are taken in float32 for float32 and the
// formats of 16 bits, in float64 for float64; TF32 where it is allowed, for float32 alone.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu_probe/driver/cublas_numbers.hpp"
#include "gpu_probe/kernels/rows/products.hpp"

namespace stowage {

class Cublas {
 public:
  /// From the first of the files that loads (libcublasLt), in the current context. Errors: none
  /// loads (the loader's words for the last), it lacks a function, cublasLtCreate fails.
  [[nodiscard]] static Result<std::unique_ptr<Cublas>> open(const std::vector<std::string>& files);
  Cublas() = default;
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;
  ~Cublas();

  struct Settings {
    void* stream = nullptr;
    std::byte* workspace = nullptr;  ///< at a multiple of 256, or cublasLtMatmul fails with 7
    Bytes workspace_bytes;
    bool tf32 = false;
  };
  /// Queues the product. Errors: the three matrices are not of one format, or c's is none of
  /// cuBLAS's; no algorithm is content with the workspace; a call of cuBLAS fails. Precondition:
  /// product.k > 0.
  [[nodiscard]] Result<void> run(const kernels::Product& product, const Settings& settings);

 private:
  /// Sizes, formats, sides, distances, alignments, workspace: what an algorithm depends on.
  using Form = std::array<std::int64_t, 18>;
  /// A form's descriptors and its algorithm.
  class Prepared;

  [[nodiscard]] static Form form_of(const kernels::Product& product, const Settings& settings);
  [[nodiscard]] Result<const Prepared*> prepared(const kernels::Product& product,
                                                 const Settings& settings);

  cublas::LtFunctions functions_;
  void* handle_ = nullptr;
  std::map<Form, std::unique_ptr<Prepared>> prepared_;
};

}  // namespace stowage
