#include "estimator/base/affine.hpp"

#include <fmt/format.h>

#include "estimator/base/bytes.hpp"

namespace stowage {

std::int64_t Affine::at(std::int64_t batch) const {
  return checked_add(constant, checked_multiply(slope, batch));
}

std::string Affine::to_string() const {
  if (slope == 0) return fmt::format("{}", constant);
  std::string text = slope == 1 ? "batch" : fmt::format("{}*batch", slope);
  if (constant > 0) text += fmt::format("+{}", constant);
  if (constant < 0) text += fmt::format("{}", constant);
  return text;
}

void throw_not_affine(Affine a, Affine b) {
  throw NotAffine(
      fmt::format("{} times {} is not affine in the batch", a.to_string(), b.to_string()));
}

bool divides(Affine b, Affine a) {
  if (b.slope == 0) {
    return b.constant != 0 && checked_remainder(a.constant, b.constant) == 0 &&
           checked_remainder(a.slope, b.constant) == 0;
  }
  // a must be a constant multiple of b.
  return checked_remainder(a.slope, b.slope) == 0 &&
         a == Affine(checked_divide(a.slope, b.slope)) * b;
}

Affine quotient(Affine a, Affine b) {
  if (b.slope != 0) return checked_divide(a.slope, b.slope);
  return {checked_divide(a.constant, b.constant), checked_divide(a.slope, b.constant)};
}

}  // namespace stowage
