// From the YAML of a list of layers to a Scope: operators and attributes looked up, expressions
// parsed, constants evaluated, `from` resolved. Every mistake is reported; the scope stands.
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

/// What a scope is read against: all that stands outside it.
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

/// Keys that every layer takes beside its attributes.
[[nodiscard]] std::span<const std::string_view> common_layer_keys();

}  // namespace stowage
