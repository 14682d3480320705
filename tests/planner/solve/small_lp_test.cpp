#include "planner/solve/small_lp.hpp"

#include <doctest/doctest.h>

#include "tests/planner/solve/random_problems.hpp"

namespace stowage {

TEST_CASE("linear program: by hand") {
  // Most of 3x + 2y with x + y <= 4, x + 3y <= 6, x <= 3: (3, 1), 11; duals 2, 0, 1.
  const LinearSolution solution =
      solve_linear_program({{-3, -2}, {{1, 1}, {1, 3}, {1, 0}}, {4, 6, 3}});
  CHECK(solution.value == doctest::Approx(-11));
  CHECK(solution.x[0] == doctest::Approx(3));
  CHECK(solution.x[1] == doctest::Approx(1));
  CHECK(solution.duals[0] == doctest::Approx(2));
  CHECK(solution.duals[1] == doctest::Approx(0));
  CHECK(solution.duals[2] == doctest::Approx(1));
}

// A primal and a dual solution that are feasible and of one value prove each other optimal.
TEST_CASE("linear program: primal and dual meet on random programs, degenerate ones too") {
  Random random(77);
  INFO("seed 77");
  for (int round = 0; round < 500; ++round) {
    const auto columns = static_cast<std::size_t>(1 + below(random, 8));
    const auto rows = static_cast<std::size_t>(1 + below(random, 5));
    LinearProgram program;
    for (std::size_t j = 0; j < columns; ++j) {
      program.cost.push_back(static_cast<double>(below(random, 21) - 12));
    }
    for (std::size_t i = 0; i < rows; ++i) {
      program.rows.emplace_back();
      for (std::size_t j = 0; j < columns; ++j) {
        program.rows.back().push_back(static_cast<double>(below(random, 11) - 5));
      }
      program.limits.push_back(static_cast<double>(below(random, 6)));
    }
    program.rows.emplace_back(columns, 1.0);  // bounded
    program.limits.push_back(10);
    const LinearSolution solution = solve_linear_program(program);
    double dual_value = 0;
    double primal_value = 0;
    for (std::size_t i = 0; i <= rows; ++i) {
      double used = 0;
      for (std::size_t j = 0; j < columns; ++j) used += program.rows[i][j] * solution.x[j];
      REQUIRE(used <= program.limits[i] + 1e-9);
      REQUIRE(solution.duals[i] >= 0);
      dual_value -= solution.duals[i] * program.limits[i];
    }
    for (std::size_t j = 0; j < columns; ++j) {
      REQUIRE(solution.x[j] >= -1e-9);
      double reduced = program.cost[j];
      for (std::size_t i = 0; i <= rows; ++i) reduced += solution.duals[i] * program.rows[i][j];
      REQUIRE(reduced >= -1e-9);
      primal_value += program.cost[j] * solution.x[j];
    }
    REQUIRE(primal_value == doctest::Approx(solution.value));
    REQUIRE(dual_value == doctest::Approx(solution.value));
  }
}

}  // namespace stowage
