// Which saved tensors lie on the host so that a step fits: the cut, judged by PyTorch's allocator.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/propose/step_case.hpp"
#include "planner/pytorch/hooked_run.hpp"
#include "planner/pytorch/offload_decisions.hpp"
#include "planner/pytorch/pytorch_plans.hpp"

namespace stowage {

struct OffloadSearch {
  struct Found {
    std::vector<OffloadDecision> decisions;
    CheckReport report;
  };
  std::optional<Found> found;  ///< none: nothing fits
  /// Of the first cut, which has all of the card's memory; none: not even that was made.
  std::optional<PlanTotals> bounds;
  Bytes least_missing;  ///< where nothing fits: of the attempt that lacked least
};

/// Solves for the shortest step within the card's memory, simulates, and solves with less until it
/// fits; then with more, half the way to what did not fit, a few times. `name`: of the proposal,
/// for the search's report. Precondition: `of` does not fit as it is.
[[nodiscard]] OffloadSearch search_offload(const PytorchRequest& request,
                                           WorkspaceSource& workspaces,
                                           const ProposalOptions& options, const HookedCase& of,
                                           const std::string& name);

}  // namespace stowage
