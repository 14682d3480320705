// DoRA (Liu et al., "DoRA: Weight-Decomposed Low-Rank Adaptation", 2024) as peft 0.21 runs it
// beside a linear layer (tuners/lora/dora.py, DoraLinearLayer.forward; tuners/lora/variants.py):
//
//   update = B(A(identity)).T                    with gradients that nobody asks for
//   norm   = ||W + scaling * update||, a row each, detached
//   scale  = magnitude / norm
//   y      = y + (scale - 1) * base + scale * B(A(x)) * scaling
//
// W is the base's weight in x's format, dequantised in each pass; base is the layer's result
// without its bias, or, behind dropout, the product of W and what was dropped out. The update is
// made through both factors from an identity matrix [in, in], which autograd saves for A.
#pragma once

#include "estimator/adapt/graph_edit.hpp"

namespace stowage {

/// What reads `base`'s result is to read the tensor returned. `lora` is the layer's own.
/// Errors: a layer that is not linear, or whose weight is in float8.
[[nodiscard]] Result<TensorId> decomposed_beside(GraphEdit& edit, const LoraSettings& lora,
                                                 DataType type, const Operator& base);

}  // namespace stowage
