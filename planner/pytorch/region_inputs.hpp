// What regions that run again are given, where a script's hooks can move it to the host.
#pragma once

#include <vector>

#include "estimator/document/step_document.hpp"
#include "planner/pytorch/module_regions.hpp"

namespace stowage {

/// Sets CheckpointRegion::inputs of the regions that lie in no other: what they are given and hooks
/// can move to the host. `modules` are the recorded step's, whose calls say it: tensors that are
/// positional arguments, of which the recording says until when the script holds them. A step that
/// was not recorded has none: there it is each activation that enters one region alone. A recording
/// without `modules`, of an older version, does not say which arguments these were: there it is
/// none. Keys are "layer1.0#input0". O(nodes + saved + regions).
void set_region_inputs(const StepGraph& step, const std::vector<RecordedModule>& modules,
                       std::vector<ModuleRegion>& regions);

}  // namespace stowage
