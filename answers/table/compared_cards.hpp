// The cards of a table: one, a list of names, or the whole catalogue.
#pragma once

#include <vector>

#include "answers/question/card_question.hpp"
#include "answers/subject/asked_card.hpp"

namespace stowage {

/// In the order of the names; all of the catalogue by size. Errors: a card that is not known or is
/// named twice, a setting of one card beside several.
[[nodiscard]] Result<std::vector<AskedCard>> compared_cards(const CardQuestion& question);

}  // namespace stowage
