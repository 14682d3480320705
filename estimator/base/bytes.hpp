// Bytes: an amount of memory, never negative in a well-formed result, as a type of its own.
//
// Arithmetic is checked: an overflow of 64 bits throws ArithmeticOverflow, which the stage that
// knows the layer turns into a Diagnostic that names it (see describe_overflow users).
#pragma once

#include <compare>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// A product or a sum left the 64-bit range. Caught where the layer's name is known.
class ArithmeticOverflow : public std::overflow_error {
 public:
  using std::overflow_error::overflow_error;
};

[[noreturn]] void throw_overflow(std::int64_t a, char operation, std::int64_t b);

[[nodiscard]] inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) throw_overflow(a, '+', b);
  return result;
}
[[nodiscard]] inline std::int64_t checked_subtract(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_sub_overflow(a, b, &result)) throw_overflow(a, '-', b);
  return result;
}
[[nodiscard]] inline std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw_overflow(a, '*', b);
  return result;
}
/// Rounded towards zero. Throws on division by zero, and on the lowest integer by -1.
[[nodiscard]] inline std::int64_t checked_divide(std::int64_t a, std::int64_t b) {
  if (b == 0 || (b == -1 && a == INT64_MIN)) throw_overflow(a, '/', b);
  return a / b;
}
/// The remainder of checked_divide, with the sign of `a`. Throws on division by zero.
[[nodiscard]] inline std::int64_t checked_remainder(std::int64_t a, std::int64_t b) {
  if (b == 0) throw_overflow(a, '%', b);
  return b == -1 ? 0 : a % b;
}

class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t count) : count_(count) {}

  [[nodiscard]] constexpr std::int64_t count() const { return count_; }
  constexpr auto operator<=>(const Bytes&) const = default;

  Bytes& operator+=(Bytes other) { return *this = Bytes(checked_add(count_, other.count_)); }
  Bytes& operator-=(Bytes other) { return *this = Bytes(checked_subtract(count_, other.count_)); }
  friend Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend Bytes operator-(Bytes a, Bytes b) { return a -= b; }
  friend Bytes operator*(Bytes a, std::int64_t n) { return Bytes(checked_multiply(a.count_, n)); }
  friend Bytes operator*(std::int64_t n, Bytes a) { return a * n; }

 private:
  std::int64_t count_ = 0;
};

inline constexpr Bytes operator""_B(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n));
}
inline constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 10);
}
inline constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 20);
}
inline constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 30);
}

/// `bytes` rounded up to the next multiple of `granularity` (> 0).
[[nodiscard]] inline Bytes round_up(Bytes bytes, Bytes granularity) {
  const std::int64_t units =
      checked_add(bytes.count(), granularity.count() - 1) / granularity.count();
  return Bytes(checked_multiply(units, granularity.count()));
}

/// "0 B", "512 B", "1.5 KiB", "22.6 GiB": IEC units, at most four significant digits.
[[nodiscard]] std::string format_bytes(Bytes bytes);

/// Both as format_bytes prints them, or, where two different amounts would print alike, in MiB, in
/// KiB or in bytes: "1783.0 MiB", "1764.0 MiB".
[[nodiscard]] std::pair<std::string, std::string> format_apart(Bytes a, Bytes b);

/// Reads "233MiB", "8 GiB", "2GB" (10^9), "1.5GiB", "4096B", case-insensitive units; "0".
/// Errors: not a number, no unit or an unknown one (with a suggestion), negative, over
/// largest_memory (32 PiB).
[[nodiscard]] Result<Bytes> parse_bytes(std::string_view text);

}  // namespace stowage
