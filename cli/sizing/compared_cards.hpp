// The cards of a comparison: a list of names, or the whole catalogue.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options/request.hpp"
#include "cli/requested/requested_step.hpp"

namespace stowage {

/// `--gpu all`: every card of the catalogue.
inline constexpr std::string_view all_cards_name = "all";
[[nodiscard]] bool is_all_cards(const std::string& name);

/// In the order typed; all of the catalogue by size. Errors: a card that is not known or is named
/// twice, an option of one card beside several.
[[nodiscard]] Result<std::vector<RequestedCard>> compared_cards(const CardRequest& request);

}  // namespace stowage
