#include "estimator/base/quantity.hpp"

#include <algorithm>
#include <cmath>

namespace stowage {

std::optional<WrittenQuantity> parse_quantity(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  return WrittenQuantity{number, text.substr(static_cast<std::size_t>(end - text.data()))};
}

std::optional<double> parse_in_units(std::string_view text, std::span<const Unit> units) {
  constexpr double largest = 1e9;
  const auto written = parse_quantity(text);
  if (!written || !(written->number >= 0) || written->number > largest) return std::nullopt;
  if (!written->rest.starts_with(' ')) return std::nullopt;
  const auto unit = std::ranges::find(units, written->rest.substr(1), &Unit::name);
  if (unit == units.end()) return std::nullopt;
  return written->number * unit->factor;
}

}  // namespace stowage
