// The calls of cuBLAS and cuDNN that a calibration measures. Every failure is thrown as
// LibraryFailure.
#pragma once

#include <string>
#include <vector>

#include "gpu_probe/device/cuda_context.hpp"
#include "gpu_probe/driver/cublas_numbers.hpp"
#include "gpu_probe/driver/library_object.hpp"

namespace stowage {

/// A cuBLAS handle. The caller gives it a workspace, as PyTorch does.
class MeasuredCublas {
 public:
  /// Of the first library of `names` that loads.
  explicit MeasuredCublas(const std::vector<std::string>& names);

  void use_workspace(DevicePointer workspace, std::size_t bytes) const;

  enum class Precision { fp32, tf32, fp16 };
  /// c = a * b for square matrices of n x n. Asynchronous.
  void multiply(Precision precision, int n, DevicePointer a, DevicePointer b,
                DevicePointer c) const;

 private:
  struct Functions {
    int (*create)(void**) = nullptr;
    int (*destroy)(void*) = nullptr;
    int (*set_workspace)(void*, void*, std::size_t) = nullptr;
    cublas::GemmEx gemm = nullptr;
  };
  [[nodiscard]] static Functions cublas_functions(const SharedLibrary& library);

  SharedLibrary library_;
  Functions functions_;
  LibraryObject handle_;
};

/// The least device memory that run_convolutions() needs.
inline constexpr std::size_t measured_convolution_bytes = std::size_t{64} << 20;
/// Runs a 3x3 convolution from 8 x 64 x 32 x 32 floats to as many, and both of its gradients, in
/// `memory`. Asynchronous. Returns cuDNN's version, "9.19.0".
[[nodiscard]] std::string run_convolutions(const SharedLibrary& cudnn, DevicePointer memory);

}  // namespace stowage
