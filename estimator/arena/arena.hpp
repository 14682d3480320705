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

/// A storage that needs one offset for all its live ranges. A parameter that stays across the end
/// of the step has two ranges, [0, a) and [b, steps).
struct ArenaRequest {
  std::vector<StepRange> live;  ///< disjoint, ascending
  Bytes bytes;
};

struct ArenaPacking {
  std::vector<Bytes> offsets;  ///< by request, multiples of the alignment
  Bytes peak;                  ///< max over requests of offset + rounded size
  Bytes lower_bound;           ///< the largest sum of live rounded sizes
  std::int64_t work = 0;       ///< block comparisons that its search made, about
};

inline constexpr Bytes arena_alignment{256};

struct PackingOptions {
  Bytes alignment = arena_alignment;  ///< sizes are rounded up to it
  int effort = 1;  ///< search effort, about 50 ms a unit; 0: only a few greedy orders are tried
  /// The search stops at a peak of at most this. 0: it looks for the least peak.
  Bytes target_peak;
  /// Offsets, by request, of a packing of a similar problem, for example one with shorter
  /// lifetimes. The requests in the order of these offsets are tried as one more greedy order.
  /// Empty: none.
  std::span<const Bytes> similar_offsets = {};
};

/// Deterministic. Throws ArithmeticOverflow where the rounded sizes do not add up in 64 bits.
[[nodiscard]] ArenaPacking pack_arena(std::span<const ArenaRequest> requests,
                                      const PackingOptions& options = {});

/// Bounds that hold for every packing, found without packing.
struct ArenaBound {
  Bytes lower_bound;  ///< the largest sum of live rounded sizes
  /// No packing has a smaller peak. Larger than `lower_bound` where requests with several ranges
  /// keep their place free in between (place_conflict.hpp).
  Bytes least_peak;
  /// For the first, second and third step of a triple of steps, by step: how many bytes less would
  /// have to be live there for a packing within `peak`, if nothing changes at the other two. Empty:
  /// no triple rules out such a packing.
  std::array<std::vector<Bytes>, 3> excess;
};

/// Bounds for packings with a peak of at most `peak`. Throws as pack_arena.
[[nodiscard]] ArenaBound bound_arena(std::span<const ArenaRequest> requests, Bytes peak,
                                     Bytes alignment = arena_alignment);

}  // namespace stowage
