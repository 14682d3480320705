// Tensors for a library that computes in float32 alone.
//
// Those of 16 bits are widened, which is exact, and a result is rounded to its format once, when
// all its terms are added up: so do a device's tensor cores that add up in float32.
#pragma once

#include <vector>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {

/// Of `count` elements from `data` on. Precondition: float16 or bfloat16.
[[nodiscard]] std::vector<float> widened(const std::byte* data, DataType type, std::int64_t count);
/// To nearest, ties to even.
void store_rounded(const std::vector<float>& values, std::byte* data, DataType type);

/// A tensor's elements in float32: its own, or a copy. KernelError where it is float64 or whole
/// numbers.
class SingleFloats {
 public:
  explicit SingleFloats(const TensorArgument& tensor);

  [[nodiscard]] float* data() { return is_copy_ ? copy_.data() : own_; }
  /// What was written to data() becomes the tensor's.
  void store() const;

 private:
  TensorArgument tensor_;
  bool is_copy_;
  float* own_ = nullptr;
  std::vector<float> copy_;
};

/// Runs a kernel on float32 copies of the call's arguments of 16 bits. Precondition: none of them
/// is written in place.
void run_in_single_floats(const KernelCall& call, KernelFunction run);

}  // namespace stowage::host
