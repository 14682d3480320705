// Patterns: what exporters write in single operators, found again among the layers.
//
// A pattern ends in a layer that becomes the row that it stands for, in place; what it read in
// between is read by nobody else then, and is not written.
//
//   x sigmoid(x)                                   silu
//   x hardsigmoid(x), x clamp(x + 3, 0, 6) / 6     hardswish
//   x (1 + erf(x / sqrt 2)) / 2                    gelu
//   x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2   gelu, tanh
//   (x - mean) / sqrt(var + eps) [w + b]           layer_norm
//   x / sqrt(mean(x^2) + eps) [w]                  rms_norm
//   instance_norm of groups, w + b                 group_norm
//   x W + b                                        linear
//   softmax(q k^T scale + mask) v                  scaled_dot_product_attention
//
// PyTorch's exporters write its fused attention with both q and k multiplied by the root of the
// scale. Where one of them is scaled, or the product, attention was written out in the module, and
// stays so.
#pragma once

#include "estimator/onnx/translation.hpp"

namespace stowage {

struct FoundPatterns {
  int activations = 0, norms = 0, linears = 0, attentions = 0;
};

/// `triangles`: constants that are causal masks. `of_pytorch`: who wrote the file.
[[nodiscard]] FoundPatterns find_patterns(LayerList& layers, const std::set<int>& triangles,
                                          bool of_pytorch);

// Each tries the pattern that ends in `layer`; false: it is none.
[[nodiscard]] bool find_activation(LayerList& layers, int layer);
[[nodiscard]] bool find_norm(LayerList& layers, int layer);
[[nodiscard]] bool find_attention(LayerList& layers, const std::vector<int>& readers,
                                  const std::set<int>& triangles, bool of_pytorch, int layer);

/// How many layers read each layer.
[[nodiscard]] std::vector<int> count_readers(const LayerList& layers);

}  // namespace stowage
