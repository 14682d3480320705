#include "bench/accuracy/score.hpp"

#include <algorithm>
#include <cmath>

namespace stowage::accuracy {

double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = p * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double part = place - std::floor(place);
  return values[below] * (1 - part) + values[above] * part;
}

Score score(const std::vector<Pair>& pairs) {
  Score result{.rows = pairs.size()};
  std::vector<double> errors, differences;
  for (const Pair& pair : pairs) {
    const double difference = (pair.predicted - pair.measured) / pair.measured;
    differences.push_back(difference);
    errors.push_back(std::abs(difference));
    if (difference < 0) ++result.low;
    if (difference < -0.02) ++result.low_by_2_percent;
    if (pair.predicted > pair.total) ++result.false_refusals;
  }
  result.median = percentile(errors, 0.5);
  result.percentile90 = percentile(errors, 0.9);
  result.median_signed = percentile(differences, 0.5);
  return result;
}

}  // namespace stowage::accuracy
