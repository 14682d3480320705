// Gives a model's linear layers quantised weights, as transformers loads it with BitsAndBytesConfig
// or torchao.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

/// Quantises the weights of all linear layers except those that the settings skip. By default the
/// output layer and layers with tied weights are skipped. Other layers are unchanged,
/// Parameter::values keeps the parameter counts, and all parameters become frozen.
/// Errors: a precision other than fp32, fp16 and bf16; a name that means no linear layer; a model
/// without any.
[[nodiscard]] Result<ModelGraph> with_quantised_base(ModelGraph model, const BaseSettings& base);

}  // namespace stowage
