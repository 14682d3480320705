// Imports a Keras model from its JSON, `model.to_json()` (docs/keras.md).
#pragma once

#include "estimator/import/imported_model.hpp"

namespace stowage {

/// Whether the text is a JSON object with the keys "class_name" and "config".
[[nodiscard]] bool is_keras_model(const FileHead& file_head);
/// Errors: not JSON; layers that the catalogue cannot express (all of them, with counts).
[[nodiscard]] Result<ImportedModel> import_keras_model(const FileHead& file_head,
                                                       const ImportOptions& options);

}  // namespace stowage
