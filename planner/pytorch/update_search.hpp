// Plans that change when and where parameters are updated.
#pragma once

#include <vector>

#include "planner/pytorch/case_trials.hpp"
#include "planner/pytorch/module_regions.hpp"

namespace stowage {

/// Each update as its gradient comes: as it is, and, where that is not enough, with each share of
/// the regions whose peak is lower then. `regions`: those that save most for their time first.
/// Returns whether it was tried.
bool search_early_updates(CaseTrials& trials, const std::vector<ModuleRegion>& regions);

/// The optimizer on the CPU: of as few parameters as do, else with saved tensors on the host, then
/// with all regions run again. Returns whether it was tried.
bool search_host_updates(CaseTrials& trials, const std::vector<ModuleRegion>& regions);

}  // namespace stowage
