// The operators of ONNX that have a rule of their own, each a function that makes layers.
#pragma once

#include <span>
#include <string_view>

#include "estimator/onnx/translation.hpp"

namespace stowage {

struct OnnxRule {
  std::string_view op;
  /// False: it made nothing, and has said why (Translation::refuse).
  bool (*translate)(Translation& translation, const OnnxNode& node) = nullptr;
};

// Sorted by nothing: a table a file.
[[nodiscard]] std::span<const OnnxRule> onnx_layer_rules();  ///< convolutions, products
[[nodiscard]] std::span<const OnnxRule> onnx_normalization_rules();
[[nodiscard]] std::span<const OnnxRule> onnx_pooling_rules();  ///< and resizing, padding
[[nodiscard]] std::span<const OnnxRule> onnx_elementwise_rules();
[[nodiscard]] std::span<const OnnxRule> onnx_layout_rules();  ///< shapes, joining
[[nodiscard]] std::span<const OnnxRule> onnx_gather_rules();
[[nodiscard]] std::span<const OnnxRule> onnx_sequence_rules();
[[nodiscard]] std::span<const OnnxRule> onnx_reduction_rules();
[[nodiscard]] std::span<const OnnxRule> onnx_recurrent_rules();  ///< and attention

/// nullptr: none.
[[nodiscard]] const OnnxRule* find_onnx_rule(std::string_view op);

}  // namespace stowage
