// Counts blocks of a placement that lie where they may not, compared pair by pair.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>

#include "planner/assemble/arena_claims.hpp"
#include "planner/assemble/packed_step.hpp"

namespace stowage::testing {

/// How many blocks reach beyond the budget, begin within a granule, or reach into another one.
inline int misplaced_blocks(const SizedStep& step, const ResidencyProblem& problem,
                            const PackedStep& packed, Bytes budget) {
  const PlacedStep placed(step, problem, packed.placement);
  const ArenaClaims claims = kept_claims(placed);
  REQUIRE(claims.requests.size() == packed.offsets.size());
  const auto share_a_step = [](const ArenaRequest& a, const ArenaRequest& b) {
    return std::ranges::any_of(a.live, [&](const StepRange& one) {
      return std::ranges::any_of(b.live,
                                 [&](const StepRange& other) { return one.overlaps(other); });
    });
  };
  const auto end = [&](std::size_t i) {
    return packed.offsets[i] + round_up(claims.requests[i].bytes, arena_alignment);
  };
  int wrong = 0;
  for (std::size_t i = 0; i < claims.requests.size(); ++i) {
    if (claims.requests[i].bytes == Bytes()) continue;
    wrong += end(i) > budget || packed.offsets[i].count() % arena_alignment.count() != 0 ? 1 : 0;
    for (std::size_t j = 0; j < i; ++j) {
      const bool apart = end(i) <= packed.offsets[j] || end(j) <= packed.offsets[i];
      wrong += !apart && share_a_step(claims.requests[i], claims.requests[j]) ? 1 : 0;
    }
  }
  return wrong;
}

}  // namespace stowage::testing
