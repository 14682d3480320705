// Attention written out: each scaled_dot_product_attention of a model as the tensor operations that
// scripts used before PyTorch had that function, and that transformers' 'eager' and timm without
// fused attention still use. A tensor of [queries, keys] for each head then stays until backward.
//
// The attribute `written_out` says in which operations (PyTorch 2.15, transformers 5.24, timm
// 1.0.31, diffusers 0.42):
//
//   scores    q k^T, times the factor, plus the mask, softmax, dropout, times v: GPT-2, BERT, T5
//   wide      the same, the softmax in float32: LLaMA and most later models
//   query     q times the factor, its product with k^T, then as above: timm, nn.MultiheadAttention
//   product   the product scales as it runs (baddbmm), then as above: diffusers
//
// Key and value heads that several query heads share are repeated first. For a causal attention one
// mask of numbers, [batch, 1, queries, keys], is made before the first layer that reads it.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

[[nodiscard]] bool has_fused_attention(const ModelGraph& model);

/// Linear in the model. A model without scaled_dot_product_attention is returned as it is. Errors:
/// as GraphEdit::add's.
[[nodiscard]] Result<ModelGraph> with_written_out_attention(ModelGraph model);

}  // namespace stowage
