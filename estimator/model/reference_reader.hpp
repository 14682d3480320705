// ReferenceReader: reads the references of `from:` and `output:` within one scope: layers, inputs
// of a block ("input", "input.1"), outputs ("qkv.0"), instances of a repeated layer ("layer1.2"),
// and all of them ("input.*", "layer1.*").
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "estimator/model/model_description.hpp"
#include "estimator/model/scope_reader.hpp"
#include "estimator/text/mistakes.hpp"

namespace stowage {

class ReferenceReader {
 public:
  /// The scope's layers must outlive the reader and have their names, `repeat`s and operators.
  ReferenceReader(const Scope& scope, const ScopeContext& context, Mistakes& mistakes);

  /// Reads a name or a list of names. Returns at least one reference; a wrong one is reported and
  /// has kind `unknown`.
  [[nodiscard]] std::vector<Reference> read(const YamlNode& node, std::string_view key);
  /// The references of a layer without `from`.
  [[nodiscard]] std::vector<Reference> implied(std::size_t layer) const;
  [[nodiscard]] Reference to_layer(std::size_t layer) const;

 private:
  Reference read_one(const YamlNode& node);
  Reference unknown(const YamlNode& node, std::string_view name);

  const std::vector<LayerEntry>& layers_;
  const int loss_;
  const ScopeContext& context_;
  Mistakes& mistakes_;
  std::unordered_map<std::string_view, int> layer_numbers_;
  std::unordered_map<std::string_view, int> input_numbers_;
};

}  // namespace stowage
