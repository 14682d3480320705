// Where in the schedule each copy stands: swap-out as soon as the version is written, until the
// lane has had time for it; prefetch just early enough to hide behind compute; both only as far as
// the memory left over reaches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/assemble/item_moves.hpp"

namespace stowage {

/// From one boundary to another, both of which may be the same: see plan.hpp. Not a StepRange.
struct CopySpan {
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

struct CopySchedule {
  std::vector<CopySpan> downloads;           ///< by download
  std::vector<CopySpan> uploads;             ///< by upload
  std::vector<std::int32_t> download_order;  ///< begin never decreases
  std::vector<std::int32_t> upload_order;    ///< likewise
  std::vector<StepRange> stays;              ///< by stay, longer where copies are in flight
  /// By node: when the CPU's run, empty for the GPU's (lane_schedule.hpp fills it).
  std::vector<StepRange> windows = {};
};

/// Bytes [begin, end) of the arena.
struct ArenaSpan {
  Bytes begin, end;
  [[nodiscard]] bool overlaps(const ArenaSpan& other) const {
    return begin < other.end && other.begin < end;
  }
};

/// What is taken for some steps.
struct TakenPlace {
  ArenaSpan span;
  StepRange steps;
};

/// What is left over for copies in flight. Either sums count, before there are offsets; or, once
/// the stays have their offsets, what is free at a stay's own place.
struct CopyRoom {
  std::vector<Bytes> item_bytes;   ///< as they count in the arena
  std::vector<Bytes> live;         ///< by step: everything of the placement, nothing in flight
  Bytes limit;                     ///< copies in flight may raise `live` to this
  std::vector<Bytes> stay_offset;  ///< by stay; empty: sums count
  std::vector<TakenPlace> taken;   ///< with stay_offset: of the stays themselves and all else
};

/// Deterministic. O(copies * (steps they are in flight + log)); with places copies * places more.
/// node_seconds: by step, on its device.
[[nodiscard]] CopySchedule schedule_copies(const ResidencyProblem& problem, const ItemMoves& moves,
                                           std::span<const double> node_seconds, CopyRoom room);

}  // namespace stowage
