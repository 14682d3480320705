// A card file (configs/gpus/*.yaml, or a user's own): a YAML mapping, described in docs/gpus.md.
// name, compute_capability and one of memory, nvml_total and cuda_total are required; the rest is
// by rule (card_rules.hpp) where it is not there. Units are part of the values. A calibration is
// such a file with only what was measured on one machine: no key is required, and `host:` may stand
// beside the card's.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/card/card.hpp"

namespace stowage {

/// Errors, all of a file's at once and each with its place: not a mapping, unknown (with a
/// suggestion), repeated and missing keys, values that are not what the key holds.
[[nodiscard]] Result<Card> read_card(const SourceTextPtr& source);

/// The card as the calibration has it. Its measurements go before those that the card has. Errors
/// as read_card's, and a name that is not the card's.
[[nodiscard]] Result<Card> read_calibration(const SourceTextPtr& source, const Card& of);

}  // namespace stowage
