// LoRA (Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021) as peft 0.21 runs it
// (tuners/lora/layer.py):
//
//   y = base(x);  x = x.to(A's format);  y = (y + B(A(dropout(x))) * scaling).to(y's format)
//
// A is [r, in] and B is [out, r]; beside 16-bit weights both are float32 unless the settings say
// otherwise (autocast_adapter_dtype). An embedding has a table [rows, r] in A's place; a
// convolution one of its own window to r channels, and one of 1x1.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

/// Everything else is frozen but what `bias` and `modules_to_save` say. A layer to save is trained
/// as a copy, and the original stays in memory, as peft keeps it. A note says how many parameters
/// are trained of how many, as print_trainable_parameters does.
/// Errors: a name that means no layer; a convolution of groups; a layer that is both a target and
/// saved.
[[nodiscard]] Result<ModelGraph> with_adapters(ModelGraph model, const LoraSettings& lora);

}  // namespace stowage
