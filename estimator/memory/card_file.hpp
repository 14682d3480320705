// A card file (configs/gpus/*.yaml, or a user's own): a flat YAML mapping, described in
// docs/gpus.md. Every key is required except cudnn_device; units are part of the values.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/memory/card.hpp"

namespace stowage {

/// Errors, all of a file's at once and each with its place: not a mapping, unknown (with a
/// suggestion), repeated and missing keys, values that are not what the key holds.
[[nodiscard]] Result<Card> read_card(const SourceTextPtr& source);

}  // namespace stowage
