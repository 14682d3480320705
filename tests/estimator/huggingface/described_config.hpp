// A configuration under tests/hf, or one written in a test, as a model.
#pragma once

#include <string>

#include "estimator/formats/import_model.hpp"
#include "estimator/model/load_model.hpp"

namespace stowage::testing {

/// "llama-3-8b". Throws with the diagnostics where it is refused.
[[nodiscard]] ModelGraph hugging_face_model(const std::string& folder,
                                            const ImportOptions& options = {});
/// The text as a file "config.json".
[[nodiscard]] Result<ImportedModel> imported_text(const std::string& text,
                                                  const ImportOptions& options = {});

}  // namespace stowage::testing
