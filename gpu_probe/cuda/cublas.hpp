// Cublas: matrix products on a CUDA stream by cuBLAS (gpu_probe/kernels/rows/products.hpp).
//
// cuBLASLt computes them, because it allocates no memory of its own: it is asked for an algorithm
// that fits the plan's workspace, even one of no bytes. (cublasGemm's handle allocates a workspace
// beside the arena.) Its first proposal is taken, and kept for all products of the same form.
//
// The library is loaded by open(), without its headers. Sums are float32 for float32 and the 16-bit
// formats, and float64 for float64; float32 products use TF32 where the settings allow it.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu_probe/driver/cublas_numbers.hpp"
#include "gpu_probe/driver/library_object.hpp"
#include "gpu_probe/kernels/rows/products.hpp"

namespace stowage {

class Cublas {
 public:
  /// Loads the first of the files (libcublasLt) that loads and is whole, in the current context.
  /// Errors: there is none (the reason for the last), or cublasLtCreate fails.
  [[nodiscard]] static Result<std::unique_ptr<Cublas>> open(const std::vector<std::string>& files);
  /// Called by open().
  Cublas(const cublas::LtFunctions& functions, LibraryObject handle);
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;
  ~Cublas();

  struct Settings {
    void* stream = nullptr;
    std::byte* workspace = nullptr;  ///< its address is a multiple of 256; else error 7
    Bytes workspace_bytes;
    bool tf32 = false;
  };
  /// Queues the product. Errors: the three matrices differ in format, cuBLAS does not have the
  /// format, no algorithm fits the workspace, or a call of cuBLAS fails. Precondition: product.k >
  /// 0.
  [[nodiscard]] Result<void> run(const kernels::Product& product, const Settings& settings);

 private:
  /// All that an algorithm depends on: sizes, formats, which matrices are transposed, distances,
  /// alignments, the workspace's size, TF32.
  using Form = std::array<std::int64_t, 18>;
  /// The descriptors and the algorithm of all products of one form.
  class PreparedProduct;

  [[nodiscard]] static Form form_of(const kernels::Product& product, const Settings& settings);
  /// Throws LibraryFailure.
  [[nodiscard]] const PreparedProduct& prepared(const kernels::Product& product,
                                                const Settings& settings);

  cublas::LtFunctions functions_;
  LibraryObject handle_;
  std::map<Form, std::unique_ptr<PreparedProduct>> prepared_;  // destroyed before the handle
};

}  // namespace stowage
