// A calibration that the program has made is read before it is written, by all that read
// calibrations.
#pragma once

#include <string>

#include "estimator/card/card.hpp"

namespace stowage {

/// The text itself. Throws std::logic_error where a reader of calibrations refuses it: the card's
/// rates, the host's, or a run's times. Such a text is a mistake of the program.
[[nodiscard]] std::string readable_calibration(std::string text, const Card& card);

}  // namespace stowage
