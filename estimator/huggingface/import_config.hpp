// A model of transformers from its configuration: config.json, a folder that has one, or hf:NAME.
//
// The graph comes from the configuration alone (docs/huggingface.md): no weights, no code of the
// model's, no network. Values that the command line sets beside the description's own arguments:
//   attention     sdpa or eager
//   transformers  the version whose step it is
//   head          causal-lm, masked-lm, sequence-classification, ...
#pragma once

#include <string_view>

#include "estimator/import/imported_model.hpp"

namespace stowage {

/// Whether `text`, a file's beginning, starts as a JSON mapping and has the quoted key.
[[nodiscard]] bool is_json_mapping_with(std::string_view text, std::string_view key);
/// A folder with a config.json, a JSON text with a "model_type", or a word that starts with "hf:".
[[nodiscard]] bool is_hugging_face_model(const Opening& opening);
/// Errors: a model type that is not read, keys that are wrong, each with its place; a name that is
/// not in the local cache, with how to get it.
[[nodiscard]] Result<ImportedModel> import_hugging_face_model(const Opening& opening,
                                                              const ImportOptions& options);

}  // namespace stowage
