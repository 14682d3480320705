// A dense primal simplex for linear programs of a few dozen rows: the master problem of the bound.
#pragma once

#include <vector>

namespace stowage {

/// Minimise cost * x subject to rows * x <= limits, x >= 0. Every limit is >= 0, so that the search
/// can start at x = 0.
struct LinearProgram {
  std::vector<double> cost;               ///< by column
  std::vector<std::vector<double>> rows;  ///< by row, column
  std::vector<double> limits;             ///< by row
};

struct LinearSolution {
  double value = 0;
  std::vector<double> x;
  std::vector<double> duals;  ///< by row, >= 0: what a limit higher by 1 would save
};

/// Precondition: bounded below. Deterministic. Uses Bland's rule once a step gains nothing, so that
/// it ends. O(rows * (rows + columns)) a pivot.
[[nodiscard]] LinearSolution solve_linear_program(const LinearProgram& program);

}  // namespace stowage
