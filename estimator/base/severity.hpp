// The words of a diagnostic's severity: "error", "warning", "note".
#pragma once

#include <string_view>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

[[nodiscard]] std::string_view to_string(Severity severity);

}  // namespace stowage
