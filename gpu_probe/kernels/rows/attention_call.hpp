// AttentionCall: the arguments of an attention kernel's call, by name.
#pragma once

#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

/// Pointers to the call's own arguments, valid as long as those.
struct AttentionCall {
  const TensorArgument *query, *key, *value;
  const TensorArgument* bias;  ///< null: none
  const TensorArgument* output;
  const TensorArgument* logsumexp;  ///< null: forward, and it is not asked for
  const TensorArgument* gradient;   ///< of the output; null: forward
};

/// attention_forward or attention_backward.
[[nodiscard]] constexpr bool is_attention(Kernel kernel) {
  return kernel == Kernel::attention_forward || kernel == Kernel::attention_backward;
}

/// Throws KernelError where shapes do not fit. Precondition: is_attention(call.kernel).
[[nodiscard]] AttentionCall attention_call(const KernelCall& call);

/// The attribute `scale`; if that is 0, 1 / sqrt(features).
[[nodiscard]] double attention_scale(const KernelCall& call);

}  // namespace stowage::kernels
