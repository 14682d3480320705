// LoRA (Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021) as peft 0.21 runs it
// (tuners/lora/layer.py):
//
//   y = base(x);  x = x.to(A's format);  y = (y + B(A(dropout(x))) * scaling).to(y's format)
//
// A is [r, in] and B is [out, r]; beside 16-bit weights both are float32 unless the settings say
// otherwise (autocast_adapter_dtype). For an embedding A is a table [rows, r]. For a convolution A
// is a convolution with the layer's window and r output channels, and B one with a 1x1 window.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

/// Freezes all other parameters except those that `bias` and `modules_to_save` name. A layer of
/// `modules_to_save` is trained as a copy, and the original stays in memory, as in peft. A note
/// gives the number of trained parameters and of all, as print_trainable_parameters does.
/// Errors: a name that means no layer; a grouped convolution; a layer that is both a target and in
/// `modules_to_save`.
[[nodiscard]] Result<ModelGraph> with_adapters(ModelGraph model, const LoraSettings& lora);

}  // namespace stowage
