// From a description (docs/model-description.md) to a ModelGraph.
//
//   SourceText -> (yaml_document) -> ModelDescription -> expand -> ModelGraph
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

struct ModelOptions {
  std::optional<std::int64_t> seq;               ///< --seq; else the description's default
  std::map<std::string, std::string> arguments;  ///< --set name=value: the model's own arguments
  std::optional<Precision> precision = {};       ///< --precision; else the description's, else fp32
};

/// All of the text's mistakes (up to 20) as diagnostics with their places.
/// Linear in the expanded graph; refuses one of more than 2,000,000 operators.
[[nodiscard]] Result<ModelGraph> load_model(SourceTextPtr source, const ModelOptions& options = {});

/// MODEL as typed: "-" (stdin), a path that exists, else a name from `directory` (configs/models),
/// with a suggestion where there is none.
[[nodiscard]] Result<SourceTextPtr> find_model(const std::string& argument,
                                               const std::string& directory);
/// The names in `directory`, sorted.
[[nodiscard]] std::vector<std::string> model_names(const std::string& directory);

}  // namespace stowage
