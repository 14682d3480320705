// StepSettings: the settings of a description's `train:` for the step, besides its optimizer.
#pragma once

#include <string_view>

#include "estimator/base/tensor_layout.hpp"

namespace stowage {

/// What zero_grad does to the gradients (PyTorch's set_to_none).
enum class ZeroGrad { to_none, to_zero };
[[nodiscard]] std::string_view to_string(ZeroGrad zero_grad);

struct StepSettings {
  ZeroGrad zero_grad = ZeroGrad::to_none;
  int augment = 0;   ///< copies of the first floating-point input made on the GPU before forward
  int prefetch = 0;  ///< batches that wait on the GPU besides the step's own (PyTorch)
  /// The memory layout of the model's images and volumes and of its parameters with as many axes,
  /// as set by `.to(memory_format=torch.channels_last)`. Inputs that only a loss reads are
  /// contiguous.
  TensorLayout layout = TensorLayout::contiguous;
  bool operator==(const StepSettings&) const = default;
};

}  // namespace stowage
