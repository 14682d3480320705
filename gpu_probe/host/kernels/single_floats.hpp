// SingleFloats: tensors for a library that computes only in float32.
//
// A 16-bit tensor is widened, which is exact. A result is rounded to its format once, when all its
// terms have been added up; a device's tensor cores that sum in float32 do the same.
#pragma once

#include <vector>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {

/// `count` elements from `data` on, as float32. Precondition: float16 or bfloat16.
[[nodiscard]] std::vector<float> widened(const std::byte* data, DataType type, std::int64_t count);
/// Rounds to nearest, ties to even.
void store_rounded(const std::vector<float>& values, std::byte* data, DataType type);

/// A tensor's elements in float32: its own, or a copy. KernelError for float64 and for whole
/// numbers.
class SingleFloats {
 public:
  explicit SingleFloats(const TensorArgument& tensor);

  [[nodiscard]] float* data() { return is_copy_ ? copy_.data() : own_; }
  /// Stores in the tensor what was written to data().
  void store() const;

 private:
  TensorArgument tensor_;
  bool is_copy_;
  float* own_ = nullptr;
  std::vector<float> copy_;
};

/// Runs a kernel on float32 copies of the call's 16-bit arguments. Precondition: none of them is
/// written in place.
void run_in_single_floats(const KernelCall& call, KernelFunction run);

}  // namespace stowage::host
