#include "estimator/base/grouped_digits.hpp"

#include <fmt/format.h>

namespace stowage {

std::string grouped_digits(std::int64_t value) {
  std::string text = fmt::format("{}", value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t i = text.size(); i > first + 3;) {
    i -= 3;
    text.insert(i, 1, ',');
  }
  return text;
}

}  // namespace stowage
