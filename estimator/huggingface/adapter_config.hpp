// peft's adapter_config.json, which describes adapters and names the model that they belong to.
//
// It describes no network, so it is refused. The error names the base model and the settings that
// size it with such adapters.
#pragma once

#include "estimator/import/imported_model.hpp"

namespace stowage {

inline constexpr const char* adapter_file_name = "adapter_config.json";

/// Whether it is such a file, or a folder that has one but no config.json.
[[nodiscard]] bool is_adapter_config(const FileHead& file_head);
[[nodiscard]] Result<ImportedModel> refuse_adapter_config(const FileHead& file_head,
                                                          const ImportOptions& options);

}  // namespace stowage
