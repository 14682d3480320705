// What pooling by windows and pooling to a given size have in common.
#pragma once

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

// Our executor finds the maxima again from the input and the output, as cuDNN does.
void forward_max_pool_stowage(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);
void backward_max_pool_stowage(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);
void backward_average_pool_stowage(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);

// PyTorch saves the input and int64 indices. It keeps the layout of an image, and pools one axis as
// two of which one is 1, so that result and gradient are views.
void forward_max_pool_pytorch(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);
void backward_max_pool_pytorch(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);
void backward_average_pool_pytorch(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);
void give_pool_gradient_pytorch(OperatorLowering& lowering, TensorView dx);

}  // namespace stowage
