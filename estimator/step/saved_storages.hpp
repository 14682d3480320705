// The storages that autograd alone keeps from forward to backward: those that may leave the GPU in
// between without a change of the training script.
#pragma once

#include <string_view>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// SavedTensor::role of what a checkpointed region's second run begins with, and of results in it
/// that are kept.
inline constexpr std::string_view region_input_role = "region input",
                                  kept_result_role = "kept result";

/// Whether a recording says when a script saved it. A description's regions have calls for what
/// they are given (CheckpointRegion::inputs), of which nobody knows until when a script holds it.
[[nodiscard]] inline bool is_recorded_call(const SavedTensor& saved) {
  return saved.call && (saved.role != region_input_role || saved.call->held_until.valid());
}

/// By StorageId: whether the step's list of saved tensors has it, it dies within the step, and
/// nothing else keeps it: no variable of the script (an input, `output`, `loss`), and not
/// torch.utils.checkpoint for a region's second run. O(storages + saved).
[[nodiscard]] std::vector<bool> kept_by_autograd(const StepGraph& step);

/// Whether the step goes over from forward to backward between a node of phase `from` and a later
/// one of phase `to`.
[[nodiscard]] constexpr bool spans_to_backward(Phase from, Phase to) {
  return (from == Phase::forward || from == Phase::loss) && to == Phase::backward;
}

}  // namespace stowage
