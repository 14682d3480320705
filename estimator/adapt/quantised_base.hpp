// A base whose linear layers have quantised weights, as transformers loads it with
// BitsAndBytesConfig or torchao.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

/// All linear layers but those that the settings skip (unsaid: the output layer, and those whose
/// weight is tied to another's) get quantised weights; what is not quantised is as it was.
/// Parameters are counted as before (Parameter::values). All parameters are frozen.
/// Errors: a precision other than fp32, fp16 and bf16; a name that means no linear layer; a model
/// without any.
[[nodiscard]] Result<ModelGraph> with_quantised_base(ModelGraph model, const BaseSettings& base);

}  // namespace stowage
