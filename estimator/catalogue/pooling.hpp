// Lowering rules that pooling by windows and pooling to a given size share.
#pragma once

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

// Our executor's backward pass finds the maxima from the saved input and output, as cuDNN does.
void forward_max_pool_stowage(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);
void backward_max_pool_stowage(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);
void backward_average_pool_stowage(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);

// PyTorch saves the input and int64 indices, and keeps an image's memory layout. It pools one axis
// as two axes of which one has length 1, so that result and gradient are views.
void forward_max_pool_pytorch(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);
void backward_max_pool_pytorch(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);
void backward_average_pool_pytorch(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);
void give_pool_gradient_pytorch(OperatorLowering& lowering, TensorView dx);

}  // namespace stowage
