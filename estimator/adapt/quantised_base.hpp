// Gives a model's linear layers quantised weights: as transformers loads it with BitsAndBytesConfig
// or torchao, as GPTQ and AWQ store them, or as a checkpoint's quantization_config says.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/checkpoint_formats.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

/// Quantises the weights of all linear layers except those that the settings skip. By default the
/// output layer and layers with tied weights are skipped. Other layers are unchanged,
/// Parameter::values keeps the parameter counts, and all parameters become frozen.
/// Errors: a precision other than fp32, fp16 and bf16; a name that means no linear layer; a model
/// without any; a layer whose size the layout does not have.
[[nodiscard]] Result<ModelGraph> with_quantised_base(ModelGraph model, const BaseSettings& base);

/// As above, layer by layer as the checkpoint has it; fine_tuning.base becomes the first group's.
/// Routers of experts and tied weights are never converted.
[[nodiscard]] Result<ModelGraph> with_checkpoint_formats(ModelGraph model,
                                                         const CheckpointFormats& stored);

}  // namespace stowage
