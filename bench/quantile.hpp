// quantile: a quantile of measured values by nearest rank, for the benches.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace stowage {

/// The value whose rank is nearest to the share `q` (0 to 1) of all values; 0 without values.
inline double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

}  // namespace stowage
