// MeasuredTimes as the section `measured:` of a calibration; docs/gpus.md has its keys.
#pragma once

#include <memory>
#include <string>

#include "estimator/base/diagnostic.hpp"
#include "estimator/card/card.hpp"
#include "planner/problem/measured_times.hpp"

namespace stowage {

/// How times name the card that they are for: a generic card is any generic card.
[[nodiscard]] std::string card_of_times(const Card& card);

/// Null where the calibration has no such section. Errors, with their places: what cannot be read,
/// and times for another card than `card`.
[[nodiscard]] Result<std::shared_ptr<const MeasuredTimes>> read_measured_times(
    const SourceTextPtr& calibration, const Card& card);

/// A calibration with that section alone. Reads back as it was, but for the links' last digits.
/// `origin`: what was measured, for its first line.
[[nodiscard]] std::string measured_times_yaml(const MeasuredTimes& times, std::string_view origin);

}  // namespace stowage
