#include "estimator/base/affine.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "estimator/base/bytes.hpp"

namespace stowage {

TEST_CASE("affine sizes add, multiply and evaluate") {
  const Affine tokens = batch_symbol * Affine(1024);
  CHECK(tokens.at(4) == 4096);
  CHECK((tokens + Affine(3)).to_string() == "1024*batch+3");
  CHECK(batch_symbol.to_string() == "batch");
  CHECK((batch_symbol - Affine(2)).to_string() == "batch-2");
  CHECK_THROWS_AS((void)(batch_symbol * batch_symbol), NotAffine);
  CHECK_THROWS_AS((void)Affine(0, 1LL << 40).at(1LL << 40), ArithmeticOverflow);
}

TEST_CASE("division is exact or refused") {
  const Affine tokens{0, 1024};
  CHECK(divides(Affine(64), tokens));
  CHECK(quotient(tokens, Affine(64)) == Affine(0, 16));
  CHECK(divides(batch_symbol, tokens));
  CHECK(quotient(tokens, batch_symbol) == Affine(1024));
  CHECK_FALSE(divides(Affine(3), tokens));
  CHECK_FALSE(divides(batch_symbol, tokens + Affine(1)));
  CHECK_FALSE(divides(Affine(0), tokens));
}

TEST_CASE("a quotient that leaves the 64-bit range is an overflow") {
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  CHECK(divides(Affine(-1), Affine(lowest)));
  CHECK_THROWS_AS((void)quotient(Affine(lowest), Affine(-1)), ArithmeticOverflow);
  CHECK(divides(Affine(-1), Affine(0, lowest)));
  CHECK_THROWS_AS((void)quotient(Affine(0, lowest), Affine(-1)), ArithmeticOverflow);
  CHECK_THROWS_AS((void)divides(Affine(0, -1), Affine(0, lowest)), ArithmeticOverflow);
  CHECK_FALSE(divides(Affine(1, -2), Affine(1, 4)));
  CHECK(quotient(Affine(-2, 4), Affine(1, -2)) == Affine(-2));
  CHECK_THROWS_AS((void)quotient(Affine(1), Affine(0)), ArithmeticOverflow);
  CHECK(checked_divide(-7, 2) == -3);
  CHECK(checked_remainder(-7, 2) == -1);
  CHECK(checked_remainder(lowest, -1) == 0);
  CHECK_THROWS_WITH_AS((void)checked_remainder(7, 0), "7 % 0 does not fit in 64 bits",
                       ArithmeticOverflow);
}

}  // namespace stowage
