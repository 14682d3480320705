// The calls of cuBLAS and cuDNN that a calibration makes. Every failure is thrown as
// LibraryFailure.
#pragma once

#include <string>
#include <vector>

#include "gpu_probe/device/cuda_context.hpp"
#include "gpu_probe/driver/cublas_numbers.hpp"

namespace stowage {

/// A cuBLAS handle with a workspace of the caller's, as PyTorch gives it one.
class MeasuredCublas {
 public:
  /// The first of `names` that is there.
  explicit MeasuredCublas(const std::vector<std::string>& names);
  ~MeasuredCublas();
  MeasuredCublas(const MeasuredCublas&) = delete;
  MeasuredCublas& operator=(const MeasuredCublas&) = delete;

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
  SharedLibrary library_;
  Functions functions_;
  void* handle_ = nullptr;
};

/// Runs a 3x3 convolution of 8 x 64 x 32 x 32 floats to as many, and both of its gradients, in
/// `memory` of at least measured_convolution_bytes. Waits for nothing. Returns cuDNN's version,
/// "9.19.0".
inline constexpr std::size_t measured_convolution_bytes = std::size_t{64} << 20;
[[nodiscard]] std::string run_convolutions(const SharedLibrary& cudnn, DevicePointer memory);

}  // namespace stowage
