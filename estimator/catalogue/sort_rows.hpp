// The rows of the operators that sort.
#pragma once

#include "estimator/model/operator_row.hpp"

namespace stowage::rows {

[[nodiscard]] OperatorRow sort();
[[nodiscard]] OperatorRow argsort();

}  // namespace stowage::rows
