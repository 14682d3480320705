// Where no plan is chosen: the smallest memory, of the GPU or of the host, that would do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "answers/planning/prepare_plan.hpp"
#include "estimator/workspace/workspace_source.hpp"
#include "planner/plan/plan.hpp"
#include "planner/propose/plan_request.hpp"

namespace stowage {

/// The smallest arena found at which there is a plan, and what to ask for to have it; whole MiB but
/// for `arena`.
struct LeastMemory {
  Bytes arena;
  std::string plan;                 ///< by which: "cheapest", "recompute", "micro-batch-4"
  Bytes budget;                     ///< to be asked for, where a budget was
  std::optional<Bytes> card_total;  ///< that leaves so much; none: the card that was asked for does
  std::optional<Bytes> host_memory;  ///< none: the host holds the rest
};

/// `request` is what `question` means. None: no memory was found at which there is a plan. Looks as
/// long as `options` let a search take, twice where the host is too small.
[[nodiscard]] std::optional<LeastMemory> find_least_memory(const PlanQuestion& question,
                                                           const PlanRequest& request,
                                                           const ArenaOfTotal& arena_of,
                                                           WorkspaceSource& workspaces,
                                                           const ProposalOptions& options);

struct LeastHostMemory {
  Bytes memory;  ///< half of it pinned
};
/// What a host needs that holds one of the plans which leave the training as it is; none: there is
/// none of these.
[[nodiscard]] std::optional<LeastHostMemory> least_host_memory(const std::vector<Plan>& plans);

/// Its own remarks say so.
[[nodiscard]] bool changes_training(const Plan& plan);
/// Why the plan is not taken unless it is asked for: it changes the training, or wants more memory
/// than the host allows. "" where nothing speaks against it.
[[nodiscard]] std::string why_not_taken(const Plan& plan, const Host& host);

}  // namespace stowage
