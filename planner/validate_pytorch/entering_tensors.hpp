// The tensors that regions are given, by the keys with which a script's hooks can move them to the
// host.
#pragma once

#include <vector>

#include "estimator/step/step_graph.hpp"
#include "planner/validate_pytorch/module_span.hpp"
#include "planner/validate_pytorch/script_regions.hpp"

namespace stowage {

/// Of each region the calls of hooks for what it is given: transient storages that forward has
/// made before the region's first kernel, and that the region reads. Of a recorded step those that
/// the recording says to be positional arguments of the region, or of the row's first child, and
/// until when the script holds them: "layer1.0#input0" is the first tensor among them. A
/// description does not know arguments: there it is each activation that enters one of the regions
/// alone, in the order of reading. A recording without modules, of an older version, knows of none.
/// `spans`: of regions that lie in no other, each in one piece.
/// O(regions * nodes).
[[nodiscard]] std::vector<std::vector<SavedCall>> entering_tensors(
    const StepGraph& step, const ScriptModules& modules, const std::vector<ScriptRegion>& regions,
    const std::vector<ModuleSpan>& spans);

}  // namespace stowage
