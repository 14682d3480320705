// tighten: propagates the memory limits into restrictions.
//
// At every step it adds up the memory that any placement within the restrictions has there for
// certain: what operations on the GPU touch, and what is resident through the step. Whatever does
// not fit beside it is ruled out (an operation goes to the CPU, a gap is dropped), until nothing
// more follows. No placement within the restrictions and the limits is lost, so a bound under the
// tightened restrictions is also one under the given ones.
#pragma once

#include "planner/solve/residency_cut.hpp"

namespace stowage {

/// False: no placement keeps to both the restrictions and the limits. O(problem * log steps) for
/// each of a few passes.
[[nodiscard]] bool tighten(const CutModel& model, Restrictions& restrictions);

}  // namespace stowage
