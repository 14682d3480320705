// The optimizer table's rows, which optimizer_table.cpp lists.
#pragma once

#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage::optimizers {

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
[[nodiscard]] OptimizerRow adam8bit();
[[nodiscard]] OptimizerRow adamw8bit();

}  // namespace stowage::optimizers
