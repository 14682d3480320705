#include "planner/solve/small_lp.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <limits>

namespace stowage {

namespace {

constexpr double tiny = 1e-11;
constexpr double nudge = 1e-7;

/// Limits that all differ a little, so that no pivot is in vain where many limits are equal: most
/// of our rows have the limit 0. The added amounts lie between 1 and 2, spread by the golden ratio.
double nudged(double limit, std::size_t row) {
  const double spread = static_cast<double>(row) * 0.6180339887498949;
  return limit + nudge * (1 + spread - std::floor(spread));
}

// Rows of [A | I | b]; the last row holds the reduced costs and minus the value.
struct Tableau {
  std::size_t rows = 0;
  std::size_t columns = 0;  // structural and slack, without b
  std::vector<std::vector<double>> cell;
  std::vector<std::size_t> basic;  // by row

  // The column with the largest gain for a unit or, with `first`, the first with a gain; `columns`:
  // none has one.
  std::size_t entering(bool first) const {
    std::size_t best = columns;
    double least = -tiny;
    for (std::size_t j = 0; j < columns; ++j) {
      if (cell[rows][j] >= least) continue;
      best = j;
      if (first) break;
      least = cell[rows][j];
    }
    return best;
  }

  // The row that limits the entering column first; ties to the lowest basic column.
  std::size_t leaving(std::size_t column) const {
    std::size_t best = rows;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < rows; ++i) {
      if (cell[i][column] <= tiny) continue;
      const double ratio = cell[i][columns] / cell[i][column];
      if (ratio < least - tiny || (ratio < least + tiny && best < rows && basic[i] < basic[best])) {
        best = i;
        least = ratio;
      }
    }
    return best;
  }

  void pivot(std::size_t row, std::size_t column) {
    const double by = cell[row][column];
    for (double& value : cell[row]) value /= by;
    for (std::size_t i = 0; i <= rows; ++i) {
      const double factor = cell[i][column];
      if (i == row || factor == 0) continue;
      for (std::size_t j = 0; j <= columns; ++j) cell[i][j] -= factor * cell[row][j];
      cell[i][column] = 0;
    }
    basic[row] = column;
  }
};

Tableau start(const LinearProgram& program) {
  Tableau tableau;
  tableau.rows = program.limits.size();
  tableau.columns = program.cost.size() + tableau.rows;
  tableau.cell.assign(tableau.rows + 1, std::vector<double>(tableau.columns + 1, 0));
  for (std::size_t i = 0; i < tableau.rows; ++i) {
    assert(program.limits[i] >= 0);
    for (std::size_t j = 0; j < program.cost.size(); ++j) tableau.cell[i][j] = program.rows[i][j];
    tableau.cell[i][program.cost.size() + i] = 1;
    tableau.cell[i][tableau.columns] = nudged(program.limits[i], i);
    tableau.basic.push_back(program.cost.size() + i);
  }
  for (std::size_t j = 0; j < program.cost.size(); ++j) {
    tableau.cell[tableau.rows][j] = program.cost[j];
  }
  return tableau;
}

}  // namespace

LinearSolution solve_linear_program(const LinearProgram& program) {
  Tableau tableau = start(program);
  const std::size_t most = 50 * (tableau.columns + 1);  // far beyond what is ever needed
  bool stalled = false;
  for (std::size_t pivots = 0; pivots < most; ++pivots) {
    const std::size_t column = tableau.entering(stalled);
    if (column == tableau.columns) break;
    const std::size_t row = tableau.leaving(column);
    assert(row < tableau.rows);
    if (row == tableau.rows) break;
    const double before = tableau.cell[tableau.rows][tableau.columns];
    tableau.pivot(row, column);
    stalled = tableau.cell[tableau.rows][tableau.columns] <= before + tiny;
  }
  // The same basis with the limits as they are: the slacks' columns are its inverse.
  LinearSolution solution;
  solution.x.assign(program.cost.size(), 0);
  for (std::size_t i = 0; i < tableau.rows; ++i) {
    const double dual = tableau.cell[tableau.rows][program.cost.size() + i];
    solution.duals.push_back(dual > 0 ? dual : 0);
    solution.value -= solution.duals.back() * program.limits[i];
    if (tableau.basic[i] >= solution.x.size()) continue;
    double x = 0;
    for (std::size_t k = 0; k < tableau.rows; ++k) {
      x += tableau.cell[i][program.cost.size() + k] * program.limits[k];
    }
    solution.x[tableau.basic[i]] = std::max(x, 0.0);
  }
  return solution;
}

}  // namespace stowage
