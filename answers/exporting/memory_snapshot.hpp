// What torch.cuda.memory._dump_snapshot writes, of a simulated process: torch/cuda/_memory_viz.py
// and pytorch.org/memory_viz read it.
//
// A pickle of a dictionary: `segments` is what the allocator holds in the end, `device_traces` its
// events from loading the model to the last step that was run. A frame is, from the inside: the
// tensor, the kernel, the layer with its file and line. Times are left out: none are known.
#pragma once

#include <string>

#include "estimator/runtime/allocator_trace.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// `buffers`: those of the process (StepOnCard::buffers).
[[nodiscard]] std::string memory_snapshot(const AllocatorTrace& trace, const StepGraph& graph,
                                          const std::vector<RuntimeBuffer>& buffers);

}  // namespace stowage
