#include "answers/planning/readable_calibration.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "estimator/card/card_file.hpp"

namespace stowage {

TEST_CASE("a calibration that its readers take is written as it is") {
  const std::string text = "# of the host alone\nhost:\n  cpu_flops: 400 GFLOP/s\n";
  CHECK(readable_calibration(text, generic_card(24_GiB)) == text);
}

TEST_CASE("a calibration that a reader refuses is not written") {
  const Card card = generic_card(24_GiB);
  CHECK_THROWS_WITH_AS(
      (void)readable_calibration("memory_bandwidth: fast\n", card),
      "a calibration was made that cannot be read: 'memory_bandwidth' is not a rate in "
      "GB/s: 'fast'",
      std::logic_error);
  CHECK_THROWS_WITH_AS(
      (void)readable_calibration("host:\n  cpu_flops: -1\n", card),
      "a calibration was made that cannot be read: 'cpu_flops' takes a rate such as "
      "400 GFLOP/s, not '-1'",
      std::logic_error);
}

}  // namespace stowage
