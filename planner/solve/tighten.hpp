// tighten: what the memory limits already decide.
//
// At every step the memory that any placement within the restrictions has there for certain is
// added up: what operations on the GPU touch, what is resident through the step. What would not fit
// beside it is ruled out (an operation goes to the CPU, a gap is dropped), and so on until nothing
// follows. No placement within the restrictions and the limits is lost, so a bound under the
// tightened restrictions is one under the given ones.
#pragma once

#include "planner/solve/residency_cut.hpp"

namespace stowage {

/// False: no placement keeps to both the restrictions and the limits. O(problem * log steps) a
/// pass; a handful of passes.
[[nodiscard]] bool tighten(const CutModel& model, Restrictions& restrictions);

}  // namespace stowage
