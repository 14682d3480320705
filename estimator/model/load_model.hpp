// Loads a description (docs/model-description.md) as a ModelGraph.
//
//   SourceText -> (yaml_document) -> ModelDescription -> expand -> ModelGraph
#pragma once

#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/model/model_options.hpp"

namespace stowage {

/// Errors: all mistakes of the text (up to 20) with their places. Linear in the expanded graph;
/// refuses one of more than 2,000,000 operators.
[[nodiscard]] Result<ModelGraph> load_model(SourceTextPtr source, const ModelOptions& options = {});

struct FoundModel {
  SourceTextPtr source;      ///< a description; for a variant, that of its base
  ModelOptions options;      ///< the variant's settings; empty: it is no variant
  Diagnostics notes = {};    ///< assumptions of an importer
  bool takes_values = true;  ///< false: its numbers already contain seq and arguments
};
/// Finds MODEL: "-" (stdin), an existing path, else a name from `directory` (configs/models) in any
/// spelling ("ResNet_50"). Variants are followed to their base (variant.hpp). Errors: an unknown
/// name (with a suggestion); a base that does not exist, may not be read or is its own variant;
/// more than longest_variant_chain variants.
[[nodiscard]] Result<FoundModel> find_model(const std::string& argument,
                                            const std::string& directory);
/// The variant's options, overridden by those of the command line.
[[nodiscard]] ModelOptions overridden(ModelOptions variant, const ModelOptions& command_line);
/// The names of the models in `directory`, sorted.
[[nodiscard]] std::vector<std::string> model_names(const std::string& directory);

}  // namespace stowage
