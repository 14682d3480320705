// The median of measurements.
#pragma once

#include <cstdint>
#include <vector>

namespace stowage {

/// Which of the two values in the middle is taken of an even number of them.
enum class MiddleValue : std::uint8_t { lower, upper };

/// Precondition: there is a value. O(n).
[[nodiscard]] double median(std::vector<double> values, MiddleValue middle);

}  // namespace stowage
