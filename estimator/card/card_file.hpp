// A card file (configs/gpus/*.yaml, or a user's own): a YAML mapping, described in docs/gpus.md.
// name, compute_capability and one of memory, nvml_total and cuda_total are required; missing
// figures are filled in by rule (card_rules.hpp). Values are written with their units. A
// calibration is such a file with only the figures that were measured on one machine: no key is
// required, and a key `host:` is allowed.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/card/card.hpp"

namespace stowage {

/// Errors, all of them at once and each with its place: not a mapping; unknown (with a suggestion),
/// repeated and missing keys; values of the wrong kind.
[[nodiscard]] Result<Card> read_card(const SourceTextPtr& source);

/// The card `of` with the figures of the calibration, whose measurements take precedence. Errors as
/// for read_card(), and a name that is not the card's.
[[nodiscard]] Result<Card> read_calibration(const SourceTextPtr& source, const Card& of);

}  // namespace stowage
