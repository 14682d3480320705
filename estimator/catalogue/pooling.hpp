// What pooling by windows and pooling to a given size have in common.
#pragma once

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// The maximum's passes. PyTorch saves the input and int64 indices; our executor finds the maxima
/// again from the input and the output, as cuDNN does.
void forward_max_pool(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);
void backward_max_pool(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);
/// PyTorch pools one axis as two of which one is 1, so that the gradient comes back as a view.
void give_pool_gradient(OperatorLowering& lowering, TensorView dx);
void backward_average_pool(OperatorLowering& lowering, Kernel kernel, NodeExtras extras);

}  // namespace stowage
