// StepRange: steps in a row, half-open: of [2, 5) the steps are 2, 3 and 4.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

namespace stowage {

struct StepRange {
  std::int32_t begin = 0;  ///< the first step
  std::int32_t end = 0;    ///< the first step after it

  /// One step alone.
  [[nodiscard]] static constexpr StepRange single(std::int32_t step) { return {step, step + 1}; }

  /// No step is in it. A range whose end lies before its begin is empty too.
  [[nodiscard]] constexpr bool empty() const { return begin >= end; }
  /// How many steps. Precondition: begin <= end.
  [[nodiscard]] constexpr std::int32_t length() const { return end - begin; }
  [[nodiscard]] constexpr bool contains(std::int32_t step) const {
    return begin <= step && step < end;
  }
  /// Whether some step is in both.
  [[nodiscard]] constexpr bool overlaps(StepRange other) const {
    return std::max(begin, other.begin) < std::min(end, other.end);
  }

  auto operator<=>(const StepRange&) const = default;
};

}  // namespace stowage
