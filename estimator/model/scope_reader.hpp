// Reads the YAML of a list of layers into a Scope: looks up operators and attributes, parses
// expressions, evaluates constants and resolves `from`. Reports every mistake, and always returns a
// scope.
#pragma once

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/model/model_description.hpp"
#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

/// An operator's entry in `defaults:`.
using OperatorDefaults = std::vector<std::pair<const AttributeSpec*, AttributeValue>>;

/// What a scope's reader needs from outside the scope.
struct ScopeContext {
  const ModelDescription& model;  ///< its names, values and inputs, and the blocks' arguments
  const std::map<std::string_view, int>& blocks;
  const std::map<const OperatorRow*, OperatorDefaults>& defaults;
  const Block* block = nullptr;  ///< whose scope it is; null: the model's own
};

struct ScopeNodes {
  const YamlNode* layers = nullptr;
  const YamlNode* output = nullptr;   ///< `output:`, or null
  const YamlNode* loss = nullptr;     ///< `loss:`, or null
  const YamlNode* modules = nullptr;  ///< `modules:`, or null
};

[[nodiscard]] Scope read_scope(const ScopeNodes& nodes, const ScopeContext& context,
                               Mistakes& mistakes);

/// The attributes of a `defaults:` entry.
[[nodiscard]] OperatorDefaults read_defaults(const YamlNode& node, const OperatorRow& row,
                                             const ModelDescription& model, Mistakes& mistakes);

/// The keys that every layer takes besides its attributes.
[[nodiscard]] std::span<const std::string_view> common_layer_keys();

}  // namespace stowage
