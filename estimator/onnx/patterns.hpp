// Patterns: groups of layers that exporters wrote instead of one operator, and that are replaced by
// the catalogue's row for it.
//
// The last layer of a pattern becomes that row, in place. The layers between are then read by no
// other layer and are not written.
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
// PyTorch's exporters write its fused attention with q and k both multiplied by the root of the
// scale. If only one of them, or the product, is scaled, the module computed attention in single
// operators, and they are kept.
#pragma once

#include "estimator/onnx/translation.hpp"

namespace stowage {

struct FoundPatterns {
  int activations = 0, norms = 0, linears = 0, attentions = 0;
};

/// `causal_masks`: constant layers that are causal masks. `of_pytorch`: PyTorch wrote the file.
[[nodiscard]] FoundPatterns find_patterns(LayerList& layers, const std::set<int>& causal_masks,
                                          bool of_pytorch);

// Each of these replaces a pattern that ends in `layer`. False: there is none.
[[nodiscard]] bool find_activation(LayerList& layers, int layer);
[[nodiscard]] bool find_norm(LayerList& layers, int layer);
[[nodiscard]] bool find_attention(LayerList& layers, const std::vector<int>& readers,
                                  const std::set<int>& causal_masks, bool of_pytorch, int layer);

/// By layer: how many layers read it.
[[nodiscard]] std::vector<int> count_readers(const LayerList& layers);

}  // namespace stowage
