#include "estimator/runtime/library_calls.hpp"

#include "estimator/workspace/attention_workspace.hpp"

namespace stowage {

bool calls_cudnn(const KernelNode& node) {
  if (node.convolution >= 0 || is_cudnn_attention(node)) return true;
  return node.kernel == Kernel::batch_norm_forward || node.kernel == Kernel::batch_norm_inference;
}

bool calls_cublas(const KernelNode& node) {
  switch (node.kernel) {
    case Kernel::linear_forward:
    case Kernel::linear_backward_data:
    case Kernel::linear_backward_filter:
    case Kernel::matmul:
      return true;
    default:
      return false;
  }
}

}  // namespace stowage
