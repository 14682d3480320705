// A kernel call of attention, its arguments by their names.
#pragma once

#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

/// Those that the call has; they are the call's own, and live as long.
struct AttentionCall {
  const TensorArgument *query, *key, *value;
  const TensorArgument* bias;  ///< or null
  const TensorArgument* output;
  const TensorArgument* logsumexp;  ///< null: forward, and nobody wants it
  const TensorArgument* gradient;   ///< the output's; null: forward
};

/// attention_forward or attention_backward.
[[nodiscard]] constexpr bool is_attention(Kernel kernel) {
  return kernel == Kernel::attention_forward || kernel == Kernel::attention_backward;
}

/// KernelError where shapes do not suit. Precondition: is_attention(call.kernel).
[[nodiscard]] AttentionCall attention_call(const KernelCall& call);

/// Attribute `scale`; 0: 1 / sqrt(features).
[[nodiscard]] double attention_scale(const KernelCall& call);

}  // namespace stowage::kernels
