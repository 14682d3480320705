// schedule_copies: when each copy runs. A swap-out begins as soon as the version is written and
// lasts until the lane has had time for it; a prefetch begins just early enough to hide behind
// compute. Both take no more memory than is left over.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/assemble/item_moves.hpp"

namespace stowage {

/// From one boundary to another, which may be the same (plan.hpp). Not a StepRange.
struct CopySpan {
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

struct CopySchedule {
  std::vector<CopySpan> downloads;           ///< by download
  std::vector<CopySpan> uploads;             ///< by upload
  std::vector<std::int32_t> download_order;  ///< begin never decreases
  std::vector<std::int32_t> upload_order;    ///< likewise
  std::vector<StepRange> stays;              ///< by stay; longer where copies are in flight
  /// By node: when the CPU's nodes run; empty for the GPU's (lane_schedule.hpp fills it).
  std::vector<StepRange> windows = {};
};

/// Bytes [begin, end) of the arena.
struct ArenaSpan {
  Bytes begin, end;
  [[nodiscard]] bool overlaps(const ArenaSpan& other) const {
    return begin < other.end && other.begin < end;
  }
};

/// A range of addresses that is taken for some steps.
struct TakenPlace {
  ArenaSpan span;
  StepRange steps;
};

/// The memory for copies in flight. Before there are offsets it is what the live sums leave; once
/// the stays have offsets, it is what is free at a stay's own place.
struct CopyRoom {
  std::vector<Bytes> item_bytes;   ///< as they count in the arena
  std::vector<Bytes> live;         ///< by step: everything of the placement, nothing in flight
  Bytes limit;                     ///< copies in flight may raise `live` to this
  std::vector<Bytes> stay_offset;  ///< by stay; empty: the live sums count
  std::vector<TakenPlace> taken;   ///< with stay_offset: the places of the stays and of all else
};

/// `node_seconds`: by step, on its device. Deterministic. O(copies * (steps they are in flight +
/// log)); with places copies * places more.
[[nodiscard]] CopySchedule schedule_copies(const ResidencyProblem& problem, const ItemMoves& moves,
                                           std::span<const double> node_seconds, CopyRoom room);

}  // namespace stowage
