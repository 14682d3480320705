// SavedMoments: when autograd saves each tensor of a step and when backward asks for it: the points
// at which a plan for PyTorch can act.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/document/step_document.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// A tensor that autograd saves.
struct SavedMoment {
  std::string key;      ///< a recorded program's (docs/step-file.md); else "layer1.0.conv1#input"
  TensorView view;      ///< how the tensor sees its storage
  NodeId packed_after;  ///< it is saved when this node has run; none: before the first
  NodeId unpacked_before;  ///< backward asks for it before this node; none: it does not
  NodeId held_until = {};  ///< the script holds it too until this node has run; none: not known
};

/// Of one micro-batch, in the order of saving; of a recorded step of several passes, of the first.
/// A lowered step has no calls of its own: a tensor counts as saved when its operator's last
/// forward kernel has run, and as asked for before the first backward kernel. O(nodes + saved * log
/// saved).
[[nodiscard]] std::vector<SavedMoment> saved_moments(const StepGraph& step);

/// Whether the tensors that the step saves, in its first pass, have a recorded program's keys.
[[nodiscard]] bool has_recorded_keys(const StepGraph& step);
/// Whether a plan of the step names what a script has: the step was recorded, with keys if it saves
/// anything, which an inference does not.
[[nodiscard]] bool names_are_recorded(const StepDocument& document);

}  // namespace stowage
