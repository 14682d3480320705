// Score: how far predictions are from measurements, and how often they are too low.
#pragma once

#include <cstddef>
#include <vector>

namespace stowage::accuracy {

/// MiB.
struct Pair {
  double measured = 0;
  double predicted = 0;
  double total = 0;  ///< of the card
};

struct Score {
  std::size_t rows = 0;
  double median = 0, percentile90 = 0;  ///< of |predicted - measured| / measured
  double median_signed = 0;             ///< of (predicted - measured) / measured
  std::size_t low = 0;                  ///< predicted below measured
  std::size_t low_by_2_percent = 0;
  std::size_t false_refusals = 0;  ///< it ran, and the prediction is above the card's total
};

/// Percentiles are those of the sorted errors at (rows - 1) * p, interpolated. No rows: all 0.
[[nodiscard]] Score score(const std::vector<Pair>& pairs);

/// Interpolated; of an empty list 0.
[[nodiscard]] double percentile(std::vector<double> values, double p);

}  // namespace stowage::accuracy
