// A module of the script, or children in a row of an nn.Sequential, as a step runs it: its kernels
// in forward.
#pragma once

#include <vector>

#include "estimator/step/step_graph.hpp"
#include "planner/validate_pytorch/script_regions.hpp"

namespace stowage {

/// Whether it is a kernel of forward's first run, or of the loss.
[[nodiscard]] inline bool runs_in_forward(const KernelNode& node) {
  return node.phase == Phase::forward || node.phase == Phase::loss;
}

struct ModuleSpan {
  NodeId first, last;                 ///< its kernels in forward; none: it has none
  std::vector<OperatorId> operators;  ///< ascending
  bool is_in_one_piece = true;        ///< no other module's kernel runs between its own
};

/// All layers that lie in the region.
[[nodiscard]] ModuleSpan module_span(const StepGraph& step, const ScriptModules& modules,
                                     const ScriptRegion& region);

}  // namespace stowage
