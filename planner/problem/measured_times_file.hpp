// MeasuredTimes as the section `measured:` of a calibration; docs/gpus.md has its keys.
#pragma once

#include <memory>
#include <string>

#include "estimator/base/diagnostic.hpp"
#include "estimator/card/card.hpp"
#include "planner/problem/measured_times.hpp"

namespace stowage {

/// The name by which times refer to a card. All generic cards have one name.
[[nodiscard]] std::string card_of_times(const Card& card);

/// Null where the calibration has no such section. Errors, with their places: what cannot be read;
/// times for another card than `card`.
[[nodiscard]] Result<std::shared_ptr<const MeasuredTimes>> read_measured_times(
    const SourceTextPtr& calibration, const Card& card);

/// A calibration file with that section alone. It reads back as it was, but for the last digits of
/// the links. `origin`: what was measured, for the file's first line.
[[nodiscard]] std::string measured_times_yaml(const MeasuredTimes& times, std::string_view origin);

}  // namespace stowage
