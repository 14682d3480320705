// What the losses share, and the sum of several.
//
// A loss is a scalar, weight times a mean. In PyTorch its backward starts from the gradient of the
// scalar, a one for the loss on which backward() is called; our executor's kernels take what the
// mean is to be multiplied by as a number, so that no scalar flows back.
#pragma once

#include "estimator/model/operator_row.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// `weight`, which every loss has.
[[nodiscard]] AttributeSpec weight_attribute();

/// The scalar that the loss's kernel writes: the output, unless a weight stands between them.
TensorView new_loss(OperatorLowering& lowering);
/// Multiplies by the weight, if there is one.
void finish_loss(OperatorLowering& lowering, const TensorView& loss);
/// PyTorch: the gradient of the scalar that the kernel wrote.
TensorView loss_gradient(OperatorLowering& lowering);
/// `scale` of a backward kernel of our executor: the weight, of a step of one micro-batch.
[[nodiscard]] Attributes gradient_scale(const OperatorLowering& lowering);

/// PyTorch's cross_entropy with label_smoothing (smoothed_cross_entropy.cpp).
void forward_smoothed_cross_entropy(OperatorLowering& lowering);
void backward_smoothed_cross_entropy(OperatorLowering& lowering);

}  // namespace stowage
