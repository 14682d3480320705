// A dense primal simplex for linear programs of a few dozen rows: the master problem of the bound.
#pragma once

#include <vector>

namespace stowage {

/// Minimise cost * x subject to rows * x <= limits, x >= 0. Every limit is >= 0, so that x = 0 is
/// where the search starts.
struct LinearProgram {
  std::vector<double> cost;               ///< by column
  std::vector<std::vector<double>> rows;  ///< by row, column
  std::vector<double> limits;             ///< by row
};

struct LinearSolution {
  double value = 0;
  std::vector<double> x;
  std::vector<double> duals;  ///< by row, >= 0: what one unit more of its limit would save
};

/// Precondition: bounded below. Deterministic; Bland's rule once a step gains nothing, so it ends.
/// O(rows * (rows + columns)) a pivot.
[[nodiscard]] LinearSolution solve_linear_program(const LinearProgram& program);

}  // namespace stowage
