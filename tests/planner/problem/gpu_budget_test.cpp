#include "planner/problem/gpu_budget.hpp"

#include <doctest/doctest.h>

namespace stowage {
namespace {

TEST_CASE("an arena as large as the budget fits, one byte more does not") {
  const GpuBudget budget = 1_MiB;
  CHECK(budget.fits(0_B));
  CHECK(budget.fits(1_MiB));
  CHECK_FALSE(budget.fits(1_MiB + 1_B));
}

TEST_CASE("excess and what is left are never negative") {
  const GpuBudget budget = 1'000_B;
  CHECK(budget.excess(900_B) == 0_B);
  CHECK(budget.excess(1'300_B) == 300_B);
  CHECK(budget.left_beside(900_B) == 100_B);
  CHECK(budget.left_beside(1'300_B) == 0_B);
}

TEST_CASE("64 parts are the budget rounded down to a multiple of 64 bytes") {
  CHECK(GpuBudget(6'400_B).sixty_fourths(62) == 6'200_B);
  CHECK(GpuBudget(6'463_B).sixty_fourths(64) == 6'400_B);
}

TEST_CASE("every step has the budget as its limit") {
  CHECK(GpuBudget(8_KiB).step_limits(3) == std::vector<Bytes>{8_KiB, 8_KiB, 8_KiB});
}

TEST_CASE("an unlimited budget says so and holds everything") {
  CHECK(GpuBudget(4_GiB).is_limited());
  CHECK_FALSE(GpuBudget::unlimited().is_limited());
  CHECK(GpuBudget::unlimited().fits(1'000'000 * 1_GiB));
}

}  // namespace
}  // namespace stowage
