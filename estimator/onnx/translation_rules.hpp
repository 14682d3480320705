// The translation rules: for each supported ONNX operator, a function that makes layers.
#pragma once

#include <span>
#include <string_view>

#include "estimator/onnx/translation.hpp"

namespace stowage {

struct OnnxRule {
  std::string_view op;
  /// False: no layer was made; Translation::refuse was told why.
  bool (*translate)(Translation& translation, const OnnxNode& node) = nullptr;
};

// One table per source file, in no particular order.
[[nodiscard]] std::span<const OnnxRule> onnx_layer_rules();  ///< convolutions, products
[[nodiscard]] std::span<const OnnxRule> onnx_normalization_rules();
[[nodiscard]] std::span<const OnnxRule> onnx_pooling_rules();  ///< and resizing, padding
[[nodiscard]] std::span<const OnnxRule> onnx_elementwise_rules();
[[nodiscard]] std::span<const OnnxRule> onnx_layout_rules();  ///< shapes, joining
[[nodiscard]] std::span<const OnnxRule> onnx_gather_rules();
[[nodiscard]] std::span<const OnnxRule> onnx_sequence_rules();
[[nodiscard]] std::span<const OnnxRule> onnx_reduction_rules();
[[nodiscard]] std::span<const OnnxRule> onnx_recurrent_rules();  ///< and attention

/// The rule for an operator; nullptr: there is none.
[[nodiscard]] const OnnxRule* find_onnx_rule(std::string_view op);

}  // namespace stowage
