// peft's adapter_config.json: adapters beside a model that lies elsewhere.
//
// It names no network, so it is refused: with the model that its adapters belong to, and with the
// settings under which that model is sized with such adapters.
#pragma once

#include "estimator/import/imported_model.hpp"

namespace stowage {

inline constexpr const char* adapter_file_name = "adapter_config.json";

/// Such a file, or a folder that has one and no config.json.
[[nodiscard]] bool is_adapter_config(const Opening& opening);
[[nodiscard]] Result<ImportedModel> refuse_adapter_config(const Opening& opening,
                                                          const ImportOptions& options);

}  // namespace stowage
