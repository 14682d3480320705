// A residency problem as an integer program, solved by CBC: an independent check of solve(), with
// which it shares no code.
//
// Written from the definition in residency_problem.hpp alone. Unknowns, all 0 or 1: x, an operation
// runs on the GPU; g, with which engine; u, a GPU copy of an item at a touch; r, it is resident in
// a gap; f, a fetch; d, the one device-to-host copy of a version.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/problem/residency_problem.hpp"

namespace stowage {

struct IntegerProgram {
  std::string text;  ///< CPLEX's LP format; the objective in milliseconds
  int unknowns = 0;
};
[[nodiscard]] IntegerProgram integer_program(const ResidencyProblem& problem,
                                             const std::vector<Bytes>& limits);

/// Whether the program `cbc` (Debian's coinor-cbc) can be run here.
[[nodiscard]] bool cbc_is_here();

/// The least cost in seconds; nullopt: CBC did not prove one, or found that there is none.
[[nodiscard]] std::optional<double> optimum_by_cbc(const ResidencyProblem& problem,
                                                   const std::vector<Bytes>& limits);

}  // namespace stowage
