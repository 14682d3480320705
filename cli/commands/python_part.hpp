// Commands of the Python part (python -m stowage), for the message to someone who asks this program
// for one of them.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// What to type instead of `words`, of which the first is no command of this program; nullopt: it
/// is none of the Python part's either.
[[nodiscard]] std::optional<Diagnostic> python_command(std::span<const std::string> words);

}  // namespace stowage
