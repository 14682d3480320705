// Affine: an integer that is a constant plus a multiple of the batch size.
//
// Every dimension, element count and byte count of a model has this form, so that a graph is built
// once and sized for any batch. A product of two batch-dependent factors is not affine and throws
// NotAffine, which the layer's shape rule turns into a Diagnostic.
#pragma once

#include <compare>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "estimator/base/bytes.hpp"

namespace stowage {

class NotAffine : public std::domain_error {
 public:
  using std::domain_error::domain_error;
};

struct Affine {
  std::int64_t constant = 0;
  std::int64_t slope = 0;  ///< per unit of batch

  constexpr Affine() = default;
  constexpr Affine(std::int64_t value) : constant(value) {}  // NOLINT: a number is an Affine
  constexpr Affine(std::int64_t c, std::int64_t s) : constant(c), slope(s) {}

  constexpr auto operator<=>(const Affine&) const = default;
  [[nodiscard]] constexpr bool is_constant() const { return slope == 0; }
  /// The value at a batch size. Checked.
  [[nodiscard]] std::int64_t at(std::int64_t batch) const;
  /// As at(), in floating point: large values are rounded, and none overflows.
  [[nodiscard]] constexpr double real_at(std::int64_t batch) const {
    return static_cast<double>(constant) + static_cast<double>(slope) * static_cast<double>(batch);
  }
  /// "64", "batch", "1024*batch", "1024*batch+3".
  [[nodiscard]] std::string to_string() const;
};

inline constexpr Affine batch_symbol{0, 1};

[[nodiscard]] inline Affine operator+(Affine a, Affine b) {
  return {checked_add(a.constant, b.constant), checked_add(a.slope, b.slope)};
}
[[nodiscard]] inline Affine operator-(Affine a, Affine b) {
  return {checked_subtract(a.constant, b.constant), checked_subtract(a.slope, b.slope)};
}
[[noreturn]] void throw_not_affine(Affine a, Affine b);
/// Throws NotAffine if both depend on the batch.
[[nodiscard]] inline Affine operator*(Affine a, Affine b) {
  if (a.slope != 0 && b.slope != 0) throw_not_affine(a, b);
  return {
      checked_multiply(a.constant, b.constant),
      checked_add(checked_multiply(a.slope, b.constant), checked_multiply(a.constant, b.slope))};
}
/// True where a == q * b for an integer (or affine) q; then `quotient` gives q. Throws
/// ArithmeticOverflow where q * b has a constant that leaves the 64-bit range.
[[nodiscard]] bool divides(Affine b, Affine a);
/// Precondition: divides(b, a). Throws ArithmeticOverflow: the lowest integer by -1.
[[nodiscard]] Affine quotient(Affine a, Affine b);

}  // namespace stowage
