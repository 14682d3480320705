// Arena packing: fixed offsets for storages with known lifetimes (dynamic storage allocation).
//
// The peak of any packing is at least the largest sum of live bytes; pack_arena reports both.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/step_range.hpp"

namespace stowage {

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

struct PackingOptions {
  Bytes alignment = arena_alignment;  ///< sizes are rounded up to it
  int effort = 1;  ///< how long is searched: some 50 ms a unit; 0: the best of a few greedy orders
  Bytes enough;    ///< a peak of at most this is not bettered; 0: search for the least
  /// Offsets, by request, of a packing of nearly the same (lives that are shorter, say): its blocks
  /// from the lowest up are one more greedy order. Empty: there is none.
  std::span<const Bytes> near = {};
};

/// Deterministic. Throws ArithmeticOverflow where the rounded sizes do not add up in 64 bits.
[[nodiscard]] ArenaPacking pack_arena(std::span<const ArenaRequest> requests,
                                      const PackingOptions& options = {});

/// What is known of all packings without packing.
struct ArenaBound {
  Bytes lower_bound;  ///< the largest sum of live rounded sizes
  Bytes least_peak;   ///< no packing has a smaller peak: more than that sum where places are held
                      ///< open for what leaves and returns (place_conflict.hpp)
  /// By step, three times: how many bytes of the peak asked for cannot be used there, where the
  /// rest stays as it is at two other steps. Empty: nothing is known to be in a packing's way.
  std::array<std::vector<Bytes>, 3> held;
};

/// Of packings with at most `peak`. Throws as pack_arena.
[[nodiscard]] ArenaBound bound_arena(std::span<const ArenaRequest> requests, Bytes peak,
                                     Bytes alignment = arena_alignment);

}  // namespace stowage
