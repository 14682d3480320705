// `from:` and `output:`: names of layers, of a block's inputs ("input", "input.1"), of outputs
// ("qkv.0") and of a repetition's instances ("layer1.2"), resolved within one scope; "input.*" and
// "layer1.*" are all of them.
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

  /// A name or a list of them; at least one reference, unknown where it was reported.
  [[nodiscard]] std::vector<Reference> read(const YamlNode& node, std::string_view key);
  /// Of the layer `layer` where no `from` is written.
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
