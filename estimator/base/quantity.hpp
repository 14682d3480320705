// Numbers as users write them, alone or with a unit: "12", "24 GiB", "400 GFLOP/s", "2 us".
//
// Sizes of memory have their own function, parse_bytes (bytes.hpp), which takes more ways of
// writing a unit and says what is wrong.
#pragma once

#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>

namespace stowage {

/// A number that is all of the text; nullopt where it is none, does not fit, or more follows.
template <typename Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return number;
}

/// A finite number, and the rest of the text behind it.
struct WrittenQuantity {
  double number = 0;
  std::string_view rest;
};
[[nodiscard]] std::optional<WrittenQuantity> parse_quantity(std::string_view text);

struct Unit {
  std::string_view name;
  double factor;  ///< of the base unit
};
inline constexpr std::array<Unit, 2> byte_rate_units{{{"GB/s", 1e9}, {"MB/s", 1e6}}};
inline constexpr std::array<Unit, 2> flop_rate_units{{{"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}}};
inline constexpr std::array<Unit, 2> time_units{{{"us", 1e-6}, {"ms", 1e-3}}};

/// A number from 0 to 1e9, one blank, one of the units: in the base unit.
[[nodiscard]] std::optional<double> parse_in_units(std::string_view text,
                                                   std::span<const Unit> units);

}  // namespace stowage
