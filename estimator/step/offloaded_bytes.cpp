#include "estimator/step/offloaded_bytes.hpp"

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

Affine offloaded_bytes(const StepGraph& step) {
  Affine bytes;
  for (const KernelNode& node : step.nodes) {
    if (node.kernel != Kernel::foreign || kernel_name(node) != offload_kernel) continue;
    for (const TensorView& view : node.reads) bytes = bytes + byte_count(view);
  }
  return bytes;
}

}  // namespace stowage
