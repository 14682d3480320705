// What PyTorch's exporters change in a model to make it run faster, undone: the memory of training
// is that of the module, not of the file.
//
//   a batch norm folded into the convolution before it    FuseBatchNormIntoConv
//   a bias of zeros taken away                            RemoveOptionalBiasFromConv, ...FromGemm
//   equal vectors made one initialiser (all biases of zeros, all scales of ones of a fresh model)
//
// onnxscript names its rules in each node's metadata (pkg.onnxscript.rewriter.rule_name, onnxscript
// 0.7), and the module that a node came from (pkg.torch.onnx.name_scopes). The tracing exporter
// folds without a word.
#pragma once

#include <string>
#include <vector>

#include "estimator/import/layer_list.hpp"
#include "estimator/onnx/onnx_file.hpp"

namespace stowage {

[[nodiscard]] bool has_folded_norm(const OnnxNode& node);
/// No norm was folded into it, and a bias of zeros was taken away. Of a convolution without a bias
/// the rule is named too.
[[nodiscard]] bool has_lost_bias(const OnnxNode& node);
/// "layer1.0.bn1", of the module whose norm was folded; empty: the file does not say.
[[nodiscard]] std::string folded_norm_name(const OnnxNode& node);

/// Vectors that several of the `needed` layers read become each layer's own: how many layers got
/// one. A model that also shares matrices between layers of one kind shares whole blocks, and is
/// left as it is.
[[nodiscard]] int separate_merged_vectors(LayerList& layers, const std::vector<bool>& needed);

}  // namespace stowage
