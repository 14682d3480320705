// FittingEffort: how much is tried where a placement does not pack, by the size of the step.
//
// A solve with a packing takes from some 50 ms at a hundred nodes to half a second at ten thousand.
#pragma once

#include <cstddef>

namespace stowage {

struct FittingEffort {
  std::size_t others = 0;     ///< of the solver's other placements, where its best does not pack
  int solves = 0;             ///< after so many no cheaper plan is searched for
  bool branches = false;      ///< in all of these solves, not in the last one alone
  std::size_t evictions = 0;  ///< placements packed by eviction, where the plan costs much more
};

[[nodiscard]] constexpr FittingEffort effort_for(std::size_t nodes, bool is_quick) {
  if (is_quick) return {};
  if (nodes < 1'000) return {4, 16, nodes < 400, 12};
  if (nodes < 3'000) return {2, 10, false, 4};
  return {2, 6, false, 0};
}

}  // namespace stowage
