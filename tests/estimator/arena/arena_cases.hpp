// Arena problems for tests, and what is known of them by definition or by trying everything.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "estimator/arena/arena.hpp"
#include "estimator/arena/arena_blocks.hpp"

namespace stowage {

/// Random requests over `steps` steps; every third has two ranges, one wraps round the end.
std::vector<ArenaRequest> random_requests(std::mt19937& random, std::size_t count,
                                          std::int32_t steps, std::int64_t largest);

/// The largest sum of live bytes, step by step.
std::int64_t naive_bound(const std::vector<ArenaRequest>& requests, Bytes alignment,
                         std::int32_t steps);

/// No two overlap, offsets are aligned, peak and bound are what they should be.
void check_packing(const std::vector<ArenaRequest>& requests, const ArenaPacking& packing,
                   Bytes alignment, std::int32_t steps);

/// The least peak without alignment: first fit over every order, one of which is optimal.
std::int64_t optimum(const std::vector<ArenaRequest>& requests);

/// The same problem as pack_arena's callers and as its searches see it.
struct ArenaProblem {
  std::vector<ArenaRequest> requests;  ///< those that take room
  ArenaBlocks blocks;
};
ArenaProblem make_problem(const std::vector<ArenaRequest>& requests, std::int32_t steps);

/// As check_packing, for the offsets of a problem's blocks.
void check_offsets(const ArenaProblem& problem, const BlockOffsets& placed);

}  // namespace stowage
