// The options by which a user asks for a cure (estimator/base/cure.hpp): no room below knows them.
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/cure.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// "give a smaller --batch"
[[nodiscard]] std::string_view in_options(Cure cure);

/// The text with options in the place of the words for cures.
[[nodiscard]] std::string in_options(std::string text);

/// The diagnostics, their cures told as options; so are the places of values from options.
[[nodiscard]] Diagnostics in_options(Diagnostics diagnostics);

}  // namespace stowage
