// StepSettings: what a description's `train:` says of the step beside its optimizer.
#pragma once

#include <string_view>

#include "estimator/base/tensor_layout.hpp"

namespace stowage {

/// What zero_grad leaves of the gradients (PyTorch's set_to_none).
enum class ZeroGrad { to_none, to_zero };
[[nodiscard]] std::string_view to_string(ZeroGrad zero_grad);

struct StepSettings {
  ZeroGrad zero_grad = ZeroGrad::to_none;
  int augment = 0;   ///< copies of the first floating-point input made on the GPU before forward
  int prefetch = 0;  ///< batches of all inputs that wait on the GPU beside the step's own (PyTorch)
  /// Of the images and volumes that the model is handed and of its parameters of as many axes, as
  /// by `.to(memory_format=torch.channels_last)`; not of what only a loss reads.
  TensorLayout layout = TensorLayout::contiguous;
  bool operator==(const StepSettings&) const = default;
};

}  // namespace stowage
