// The card that a question names: of the catalogue, of this machine, or a generic one.
#pragma once

#include "answers/question/card_question.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/card/card.hpp"

namespace stowage {

struct AskedCard {
  Card card;
  bool is_assumed = false;  ///< nobody named one: a step's file says its compute capability
  Bytes in_use;             ///< by others, where it is the card of this machine
  Diagnostics notes;        ///< what was assumed
};

/// One card, as its calibration has it. Errors: a name that is unknown or ambiguous, a file with
/// mistakes, no GPU where this machine's is meant.
[[nodiscard]] Result<AskedCard> find_asked_card(const CardQuestion& question);

}  // namespace stowage
