// The attributes of a dropout kernel call, which attention's own dropout uses too.
#pragma once

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// `p` and a `seed` of its own for every layer and micro-batch.
[[nodiscard]] Attributes dropout_attributes(const OperatorLowering& lowering, double p);

}  // namespace stowage
