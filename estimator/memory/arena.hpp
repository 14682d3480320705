// Arena packing: fixed offsets for storages with known lifetimes (dynamic storage allocation).
//
// The peak of any packing is at least the largest sum of live bytes; pack_arena reports both.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "estimator/base/bytes.hpp"

namespace stowage {

/// Half-open, in steps.
struct StepRange {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  auto operator<=>(const StepRange&) const = default;
};

/// What wants one place. Several ranges share the offset: a parameter that stays over the step's
/// end is there in [0, a) and in [b, steps).
struct ArenaRequest {
  std::vector<StepRange> live;  ///< disjoint, ascending
  Bytes bytes;
};

struct ArenaPacking {
  std::vector<Bytes> offsets;  ///< by request, multiples of the alignment
  Bytes peak;                  ///< max over requests of offset + rounded size
  Bytes lower_bound;           ///< the largest sum of live rounded sizes
};

inline constexpr Bytes arena_alignment{256};

/// Deterministic. Sizes are rounded up to `alignment`. `effort` bounds how many orders are tried
/// (0: the best of a few greedy orders). Complexity O(orders * n * overlapping).
[[nodiscard]] ArenaPacking pack_arena(std::span<const ArenaRequest> requests,
                                      Bytes alignment = arena_alignment, int effort = 1);

}  // namespace stowage
