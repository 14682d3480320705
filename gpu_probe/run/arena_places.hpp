// ArenaPlaces: where a plan's residences and workspaces lie in the two arenas of an execution.
//
// Exact places are at the plan's own offsets, in arenas of the plan's own sizes. Padded places do
// not use the offsets: each residence and workspace gets a place of its own with canary bytes on
// both sides, in arenas that are as large as that takes. So a kernel that writes past its arguments
// is told from a plan in which places overlap.
#pragma once

#include <vector>

#include "planner/plan/plan.hpp"

namespace stowage {

struct ArenaPlaces {
  std::vector<Bytes> gpu, host;  ///< offsets, by index into Plan::gpu and Plan::host
  std::vector<Bytes> workspace;  ///< offsets, by NodeId, for nodes that have a workspace
  Bytes gpu_arena, host_arena;
  Bytes pinned;  ///< at the beginning of the host's arena: all that copies use
  Bytes canary;  ///< bytes of canaries on each side of a place; 0: none
};

inline constexpr Bytes canary_bytes{256};

[[nodiscard]] ArenaPlaces exact_places(const Plan& plan);
/// Placed first fit, in the order of time. The arenas' sizes are about the plan's own peaks plus
/// the canaries.
[[nodiscard]] ArenaPlaces padded_places(const Plan& plan);

}  // namespace stowage
