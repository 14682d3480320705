#include "estimator/base/median.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace stowage {

double median(std::vector<double> values, MiddleValue middle) {
  assert(!values.empty());
  const std::size_t rank =
      middle == MiddleValue::lower ? (values.size() - 1) / 2 : values.size() / 2;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::ranges::nth_element(values, at);
  return *at;
}

}  // namespace stowage
