// The models of a table: those that are named, a folder standing for those in it.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// Whether it is a folder of models. One with a config.json is a model itself, as transformers
/// saves them, and a name of `directory` (configs/models) means that model.
[[nodiscard]] bool is_model_folder(const std::string& source, const std::string& directory);

/// In the order of the names; a folder's in the order of their names: its files that end in .yaml,
/// .yml, .json or .onnx, and its folders with a config.json. Hidden ones are left out. Errors: a
/// folder that cannot be read, or that has none of these; stdin named twice.
[[nodiscard]] Result<std::vector<std::string>> models_named(const std::vector<std::string>& sources,
                                                            const std::string& directory);

}  // namespace stowage
