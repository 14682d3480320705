// Diagnostics as JSON: what stderr holds where --format json meets a mistake.
#pragma once

#include <span>

#include "cli/output/json_value.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// {"schema_version", "diagnostics": [{severity, message, file, line, column, hint, notes}]}; null
/// for a member that there is nothing to say about.
[[nodiscard]] Json diagnostics_json(std::span<const Diagnostic> diagnostics);

/// The list alone: the member `notes` of an answer.
[[nodiscard]] Json::Array diagnostics_array(std::span<const Diagnostic> diagnostics);

}  // namespace stowage
