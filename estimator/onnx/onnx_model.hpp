// The reader of ONNX files: docs/onnx.md.
#pragma once

#include "estimator/import/imported_model.hpp"

namespace stowage {

/// By the first fields of a ModelProto: nothing else begins like it.
[[nodiscard]] bool is_onnx_model(const Opening& opening);
/// Errors: not a whole ModelProto (with the byte where it breaks off), operators that the catalogue
/// cannot express (all of them, with counts), sizes that do not follow.
[[nodiscard]] Result<ImportedModel> import_onnx_model(const Opening& opening,
                                                      const ImportOptions& options);

}  // namespace stowage
