#include "tests/support/zero_estimate.hpp"

#include <doctest/doctest.h>

namespace stowage::testing {

TEST_CASE("the ZeRO paper's example: 7.5 billion parameters on 64 GPUs") {
  const auto gigabytes = [](int stage) {
    return zero_paper_bytes(7.5e9, {.gpus = 64, .zero = stage}) / 1e9;
  };
  CHECK(gigabytes(0) == doctest::Approx(120));
  CHECK(gigabytes(1) == doctest::Approx(31.40625));
  CHECK(gigabytes(2) == doctest::Approx(16.640625));
  CHECK(gigabytes(3) == doctest::Approx(1.875));
  CHECK(zero_paper_bytes(7.5e9, {.gpus = 1, .zero = 3}) == doctest::Approx(120e9));
}

TEST_CASE("DeepSpeed's own formulas, at the sizes of its documentation") {
  // 2,851,000,000 parameters on one node of 8 GPUs, and 32,000,000 in the largest layer
  // (deepspeed.readthedocs.io, memory requirements): 15.93 GiB in stage 2, 6.09 GiB in stage 3.
  constexpr double gibibyte = 1 << 30;
  CHECK(deepspeed_zero2_bytes(2851e6, 8) / gibibyte == doctest::Approx(15.93).epsilon(0.001));
  CHECK(deepspeed_zero3_bytes(2851e6, 32e6, 8) / gibibyte == doctest::Approx(6.09).epsilon(0.001));
}

}  // namespace stowage::testing
