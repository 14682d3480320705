// ArenaClaims: the blocks of a scheduled placement that need a place in an arena, on the GPU and on
// the host.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "estimator/arena/arena.hpp"
#include "planner/assemble/placed_step.hpp"
#include "planner/plan/plan.hpp"
#include "planner/problem/gpu_budget.hpp"

namespace stowage {

/// Requests for places, and the residences and workspaces that they are for.
struct ArenaClaims {
  std::vector<ArenaRequest> requests;
  std::vector<std::pair<std::int32_t, Residence>> residences;     ///< (request, without offset)
  std::vector<std::pair<std::int32_t, std::int32_t>> workspaces;  ///< (request, node)
};

/// Requests for the stays first, in their order, for the steps that `stays` gives each; then for
/// temporaries and workspaces. Number and order of the requests do not depend on `stays`.
[[nodiscard]] ArenaClaims claim_gpu(const PlacedStep& placed, std::span<const StepRange> stays);

/// The requests of what the placement keeps, without copies in flight.
[[nodiscard]] inline ArenaClaims kept_claims(const PlacedStep& placed) {
  return claim_gpu(placed, placed.own_stays());
}

/// A storage that a copy reads or writes is pinned, whatever else uses it; all others are pageable.
struct HostClaims {
  ArenaClaims pinned, pageable;
};
[[nodiscard]] HostClaims claim_host(const PlacedStep& placed, const CopySchedule& schedule);

/// The largest live sum of the requests, in the arena's granules.
[[nodiscard]] Bytes live_peak(const ArenaClaims& claims, std::int32_t steps);

/// By step: how far blocks of the packing reach beyond the budget.
[[nodiscard]] std::vector<Bytes> excess_by_step(const ArenaClaims& claims,
                                                const ArenaPacking& packing, GpuBudget budget,
                                                std::int32_t steps);

/// The residences with their offsets, ordered by their first step.
[[nodiscard]] std::vector<Residence> residences(const ArenaClaims& claims,
                                                const ArenaPacking& packing);

}  // namespace stowage
