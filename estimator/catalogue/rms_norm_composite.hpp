// The RMS norms that language models of transformers write in operators: lowered one by one, with
// autograd's lifetimes. `implementation` composite and composite_t5 of rms_norm, and
// rms_norm_plus_one (rms_norm.cpp says how the three differ).
#pragma once

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

void forward_rms_norm_composite(OperatorLowering& lowering);
void backward_rms_norm_composite(OperatorLowering& lowering);

/// Whether a weight multiplies the normalized input.
[[nodiscard]] bool has_rms_norm_scale(const OperatorLowering& lowering);
/// x's shape with 1 for the normalized axes.
[[nodiscard]] Shape rms_norm_statistics_shape(const OperatorLowering& lowering,
                                              const TensorView& x);

}  // namespace stowage
