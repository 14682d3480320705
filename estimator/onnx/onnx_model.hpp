// Imports ONNX files (docs/onnx.md).
#pragma once

#include "estimator/import/imported_model.hpp"

namespace stowage {

/// Whether the file starts with the first fields of a ModelProto; no other format does.
[[nodiscard]] bool is_onnx_model(const FileHead& file_head);
/// Errors: not a complete ModelProto (with the byte where it breaks off); operators that the
/// catalogue cannot express (all of them, with counts); unknown sizes.
[[nodiscard]] Result<ImportedModel> import_onnx_model(const FileHead& file_head,
                                                      const ImportOptions& options);

}  // namespace stowage
