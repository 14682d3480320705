// Where a plan's residences and workspaces lie in the two arenas of an execution.
//
// Exact: at the plan's own offsets, in arenas of the plan's own sizes. Padded: each at a place of
// its own with canary bytes on both sides, in arenas as large as that takes; the offsets play no
// part, so that a kernel which writes past its arguments is told from a plan that mixes places up.
#pragma once

#include <vector>

#include "planner/plan/plan.hpp"

namespace stowage {

struct ArenaPlaces {
  std::vector<Bytes> gpu, host;  ///< offsets, by index into Plan::gpu and Plan::host
  std::vector<Bytes> workspace;  ///< by NodeId; where the node has one
  Bytes gpu_arena, host_arena;
  Bytes pinned;  ///< of the host's arena, at its front: all that copies reach
  Bytes canary;  ///< on each side of everything; 0: none
};

inline constexpr Bytes canary_bytes{256};

[[nodiscard]] ArenaPlaces exact_places(const Plan& plan);
/// First fit in the order of time: about the plan's own peaks, plus the canaries.
[[nodiscard]] ArenaPlaces padded_places(const Plan& plan);

}  // namespace stowage
