// The attribute `held` of attention's softmax (rewrite/attention_variables.hpp heeds it).
#pragma once

#include "estimator/model/operator_row.hpp"

namespace stowage {

[[nodiscard]] AttributeSpec held_attribute();

}  // namespace stowage
