// RMS norms that language models of transformers write as several tensor operations: lowered one
// operation at a time, with autograd's lifetimes. These are the implementations composite and
// composite_t5 of rms_norm, rms_norm_plus_one and rms_norm_wide (rms_norm.cpp says how the four
// differ).
#pragma once

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

void forward_rms_norm_composite(OperatorLowering& lowering);
void backward_rms_norm_composite(OperatorLowering& lowering);

/// Whether a weight multiplies the normalized input.
[[nodiscard]] bool has_rms_norm_scale(const OperatorLowering& lowering);
/// The shape of the statistics: x's shape with length 1 for the normalized axes.
[[nodiscard]] Shape rms_norm_statistics_shape(const OperatorLowering& lowering,
                                              const TensorView& x);

}  // namespace stowage
