// ArenaClaims: what of a scheduled placement wants a place in an arena, on the GPU and on the host.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "estimator/arena/arena.hpp"
#include "planner/assemble/placed_step.hpp"
#include "planner/plan/plan.hpp"
#include "planner/problem/gpu_budget.hpp"

namespace stowage {

/// Requests, and which residences or workspaces the places are for.
struct ArenaClaims {
  std::vector<ArenaRequest> requests;
  std::vector<std::pair<std::int32_t, Residence>> residences;     ///< (request, without offset)
  std::vector<std::pair<std::int32_t, std::int32_t>> workspaces;  ///< (request, node)
};

/// The stays first, in their order, for the steps that `stays` gives each; then temporaries and
/// workspaces. The requests are the same, and in the same order, whatever the stays' steps are.
[[nodiscard]] ArenaClaims claim_gpu(const PlacedStep& placed, std::span<const StepRange> stays);

/// Of what the placement keeps, without copies in flight.
[[nodiscard]] inline ArenaClaims kept_claims(const PlacedStep& placed) {
  return claim_gpu(placed, placed.own_stays());
}

/// What a copy reaches is pinned, whatever else it is for; the rest need not be.
struct HostClaims {
  ArenaClaims pinned, pageable;
};
[[nodiscard]] HostClaims claim_host(const PlacedStep& placed, const CopySchedule& schedule);

/// The largest live sum of what is claimed, in the arena's granules.
[[nodiscard]] Bytes live_peak(const ArenaClaims& claims, std::int32_t steps);

/// How far blocks reach beyond the budget, at each step.
[[nodiscard]] std::vector<Bytes> overhang(const ArenaClaims& claims, const ArenaPacking& packing,
                                          GpuBudget budget, std::int32_t steps);

/// With their offsets, by their first step.
[[nodiscard]] std::vector<Residence> residences(const ArenaClaims& claims,
                                                const ArenaPacking& packing);

}  // namespace stowage
