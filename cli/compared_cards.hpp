// --gpu of a comparison: one card, a list of them, or the whole catalogue.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/requested_step.hpp"

namespace stowage {

/// `--gpu all`: every card of the catalogue.
inline constexpr std::string_view all_cards_name = "all";
[[nodiscard]] bool is_all_cards(const std::string& name);

/// In the order typed; the catalogue's by their memory. Errors: a name in the list that is none, or
/// is named twice, and options that mean one card.
[[nodiscard]] Result<std::vector<RequestedCard>> compared_cards(const CardRequest& request);

}  // namespace stowage
