// The attributes of a dropout kernel call, also for the dropout within attention.
#pragma once

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// The attributes `p` and `seed`; every layer and micro-batch has a different seed.
[[nodiscard]] Attributes dropout_attributes(const OperatorLowering& lowering, double p);

}  // namespace stowage
