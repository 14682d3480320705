// The rows of the optimizer table, one function each; optimizer_table.cpp lists them.
#pragma once

#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage::optimizers {

// Conditions (StateTensor::kept) of a factored second moment: rows and columns for matrices, the
// whole tensor for vectors.
[[nodiscard]] inline bool is_matrix(const OptimizerSettings&, const UpdatedTensor& tensor) {
  return tensor.shape.size() >= 2;
}
[[nodiscard]] inline bool is_vector(const OptimizerSettings&, const UpdatedTensor& tensor) {
  return tensor.shape.size() < 2;
}

// torch_optimizers.cpp
[[nodiscard]] OptimizerRow sgd();
[[nodiscard]] OptimizerRow adam();
[[nodiscard]] OptimizerRow adamw();
[[nodiscard]] OptimizerRow adagrad();
[[nodiscard]] OptimizerRow rmsprop();
[[nodiscard]] OptimizerRow adadelta();
[[nodiscard]] OptimizerRow adamax();
[[nodiscard]] OptimizerRow nadam();
[[nodiscard]] OptimizerRow radam();
[[nodiscard]] OptimizerRow adafactor();
// other_optimizers.cpp
[[nodiscard]] OptimizerRow lion();
[[nodiscard]] OptimizerRow lamb();
[[nodiscard]] OptimizerRow transformers_adafactor();
// bitsandbytes_optimizers.cpp
[[nodiscard]] OptimizerRow adam8bit();
[[nodiscard]] OptimizerRow adamw8bit();
[[nodiscard]] OptimizerRow paged_adamw_32bit();
[[nodiscard]] OptimizerRow paged_adamw_8bit();
[[nodiscard]] OptimizerRow paged_lion_32bit();
[[nodiscard]] OptimizerRow paged_lion_8bit();

}  // namespace stowage::optimizers
