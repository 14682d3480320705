// Imports a model of transformers from its configuration: a config.json, a folder that has one, or
// hf:NAME.
//
// Only the configuration is used (docs/huggingface.md): no weights, no code of the model, no
// network access. Values that the command line can set besides the description's own arguments:
//   attention     sdpa or eager
//   transformers  the version whose step is sized
//   head          causal-lm, masked-lm, sequence-classification, ...
#pragma once

#include <string_view>

#include "estimator/import/imported_model.hpp"

namespace stowage {

/// Whether `text`, a file's beginning, starts as a JSON mapping and has the quoted key.
[[nodiscard]] bool is_json_mapping_with(std::string_view text, std::string_view key);
/// A folder with a config.json, a JSON text with a "model_type", or a word that starts with "hf:".
[[nodiscard]] bool is_hugging_face_model(const FileHead& file_head);
/// Errors: an unsupported model type, wrong keys, each with its place; a name that is not in the
/// local cache, with how to get it.
[[nodiscard]] Result<ImportedModel> import_hugging_face_model(const FileHead& file_head,
                                                              const ImportOptions& options);

}  // namespace stowage
