#include "estimator/base/quantity.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

using namespace stowage;

TEST_CASE("a number is all of its text") {
  CHECK(parse_number<std::int64_t>("12") == 12);
  CHECK(parse_number<std::int64_t>("-3") == -3);
  CHECK(parse_number<double>("1.5") == 1.5);
  for (const char* text : {"", "12 ", " 12", "12x", "99999999999999999999", "one", "1.5"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number<std::int64_t>(text).has_value());
  }
}

TEST_CASE("a quantity is a number, one blank and a unit") {
  CHECK(parse_in_units("12.5 GB/s", byte_rate_units) == 12.5e9);
  CHECK(parse_in_units("300 MB/s", byte_rate_units) == 300e6);
  CHECK(parse_in_units("0 us", time_units) == 0);
  CHECK(parse_in_units("2 us", time_units) == doctest::Approx(2e-6));
  CHECK(parse_in_units("35.6 TFLOP/s", flop_rate_units) == doctest::Approx(35.6e12));
  for (const char* text : {"", "400", "400GB/s", "400  GB/s", "400 gb/s", "400 TFLOP/s", "-2 GB/s",
                           "nan GB/s", "inf GB/s", "2e9 GB/s", "GB/s", " 1 GB/s", "1 GB/s "}) {
    CAPTURE(text);
    CHECK_FALSE(parse_in_units(text, byte_rate_units).has_value());
  }
}

TEST_CASE("a written quantity keeps what stands behind the number") {
  const auto written = parse_quantity("24 GiB");
  REQUIRE(written.has_value());
  CHECK(written->number == 24);
  CHECK(written->rest == " GiB");
  CHECK_FALSE(parse_quantity("GiB").has_value());
  CHECK_FALSE(parse_quantity("inf").has_value());
}
