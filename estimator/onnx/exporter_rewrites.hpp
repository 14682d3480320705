// Undoes optimisations that PyTorch's exporters make, because the memory of training is that of the
// original module:
//
//   a batch norm folded into the convolution before it    FuseBatchNormIntoConv
//   a bias of zeros removed                            RemoveOptionalBiasFromConv, ...FromGemm
//   equal vectors merged into one initialiser (all zero biases, all unit scales of a fresh model)
//
// onnxscript names its rules in each node's metadata (pkg.onnxscript.rewriter.rule_name, onnxscript
// 0.7), and the module that a node came from (pkg.torch.onnx.name_scopes). The tracing exporter
// folds without metadata.
#pragma once

#include <string>
#include <vector>

#include "estimator/import/layer_list.hpp"
#include "estimator/onnx/onnx_file.hpp"

namespace stowage {

[[nodiscard]] bool has_folded_norm(const OnnxNode& node);
/// Whether a bias of zeros was removed from it, and no norm was folded into it. The rule is also
/// named for a convolution that never had a bias.
[[nodiscard]] bool has_lost_bias(const OnnxNode& node);
/// The module of the folded norm, "layer1.0.bn1"; empty: the file does not say.
[[nodiscard]] std::string folded_norm_name(const OnnxNode& node);

/// Gives each of the `needed` layers its own copy of a vector that several of them read, and
/// returns the number of layers changed. A model that also shares matrices between layers of one
/// kind shares whole blocks, and is not changed.
[[nodiscard]] int separate_merged_vectors(LayerList& layers, const std::vector<bool>& needed);

}  // namespace stowage
