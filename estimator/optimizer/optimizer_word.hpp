// The names by which optimizers are asked for, of their settings.
#pragma once

#include <optional>
#include <string>

#include "estimator/optimizer/optimizer_settings.hpp"

namespace stowage {

/// The name of the row or the preset that has these settings, whatever the implementation and the
/// master weights are: "nesterov". None: no name has them.
[[nodiscard]] std::optional<std::string> optimizer_name(const OptimizerSettings& settings);

/// The name of the row or the preset that keeps the same state, whatever its rates are; else the
/// row's: "momentum".
[[nodiscard]] std::string optimizer_word(const OptimizerSettings& settings);

}  // namespace stowage
