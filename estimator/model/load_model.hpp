// From a description (docs/model-description.md) to a ModelGraph.
//
//   SourceText -> (yaml_document) -> ModelDescription -> expand -> ModelGraph
#pragma once

#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/model/model_options.hpp"

namespace stowage {

/// All of the text's mistakes (up to 20) as diagnostics with their places.
/// Linear in the expanded graph; refuses one of more than 2,000,000 operators.
[[nodiscard]] Result<ModelGraph> load_model(SourceTextPtr source, const ModelOptions& options = {});

struct FoundModel {
  SourceTextPtr source;      ///< a description; of a variant, its base's
  ModelOptions options;      ///< what a variant says; empty where it is none
  Diagnostics notes = {};    ///< what the reader of a foreign format assumed
  bool takes_values = true;  ///< false: seq and arguments are in its numbers already
};
/// MODEL as typed: "-" (stdin), a path that exists, else a name from `directory` (configs/models),
/// however it is spelt ("ResNet_50"), with a suggestion where there is none. Variants
/// are followed to their base (variant.hpp); errors: a base that is not there or may not be read,
/// that leads back to itself, or more than longest_variant_chain of them.
[[nodiscard]] Result<FoundModel> find_model(const std::string& argument,
                                            const std::string& directory);
/// What the command line says, over what a variant says.
[[nodiscard]] ModelOptions overridden(ModelOptions variant, const ModelOptions& command_line);
/// The names in `directory`, sorted.
[[nodiscard]] std::vector<std::string> model_names(const std::string& directory);

}  // namespace stowage
