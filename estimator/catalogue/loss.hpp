// Functions that the losses share, and the sum of several losses.
//
// A loss is a scalar: weight times a mean. In PyTorch its backward pass starts from the scalar's
// gradient, which is 1 for the loss on which backward() is called. Our executor's kernels take the
// factor of the mean as an attribute, so no gradient tensor of the scalar exists.
#pragma once

#include "estimator/model/operator_row.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// The attribute `weight` of every loss.
[[nodiscard]] AttributeSpec weight_attribute();

/// Makes the scalar that the loss's kernel writes: the output, or a temporary to be multiplied by
/// the weight.
TensorView new_loss(OperatorLowering& lowering);
/// Multiplies the scalar by the weight, if there is one.
void finish_loss(OperatorLowering& lowering, const TensorView& loss);
/// In PyTorch: the gradient of the scalar that the kernel wrote.
TensorView loss_gradient(OperatorLowering& lowering);
/// The attribute `scale` of our executor's backward kernel: the weight, in a step of one
/// micro-batch.
[[nodiscard]] Attributes gradient_scale(const OperatorLowering& lowering);

/// PyTorch's cross_entropy with label_smoothing (smoothed_cross_entropy.cpp).
void forward_smoothed_cross_entropy(OperatorLowering& lowering);
void backward_smoothed_cross_entropy(OperatorLowering& lowering);

}  // namespace stowage
