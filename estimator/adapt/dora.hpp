// DoRA (Liu et al., "DoRA: Weight-Decomposed Low-Rank Adaptation", 2024) as peft 0.21 runs it
// beside a linear layer (tuners/lora/dora.py, DoraLinearLayer.forward; tuners/lora/variants.py):
//
//   update = B(A(identity)).T                    with unused gradients
//   norm   = ||W + scaling * update|| of each row, detached
//   scale  = magnitude / norm
//   y      = y + (scale - 1) * base + scale * B(A(x)) * scaling
//
// W is the base layer's weight in x's format, dequantised in each pass. `base` is the layer's
// result without its bias or, with dropout, the product of W and the dropped-out input. The update
// is computed by applying both factors to an identity matrix [in, in], which autograd saves for A.
#pragma once

#include "estimator/adapt/graph_edit.hpp"

namespace stowage {

/// Adds the DoRA operators beside `base` and returns the tensor that readers of `base`'s result
/// must read instead. `lora`: the settings of this layer (settings_of_layer).
/// Errors: a layer that is not linear, or whose weight is in float8.
[[nodiscard]] Result<TensorId> add_dora(GraphEdit& edit, const LoraSettings& lora, DataType type,
                                        const Operator& base);

}  // namespace stowage
