// TrainingLoop: the loop of a PyTorch script that a training step is sized for: what it keeps from
// one step to the next beside parameters and the optimizer's state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/document/step_document.hpp"

namespace stowage {

struct TrainingLoop {
  /// Recorded of the user's own script; what follows is then not known.
  bool is_recorded = false;
  ZeroGrad zero_grad = ZeroGrad::to_none;
  /// Each gradient is used up and let go within backward: there is no zero_grad.
  bool updates_in_backward = false;
  /// Results that variables keep until the next step's replace them, by their layers' names:
  /// "lm_head", "loss". None: the script lets go of the output, or it is of no size.
  std::vector<std::string> kept;
  bool replaced_after_loss = false;  ///< the module returns output and loss together
};

/// nullopt: an inference, or a runtime whose steps are no script's.
[[nodiscard]] std::optional<TrainingLoop> training_loop(const StepDocument& document);

/// "zero_grad drops the gradients before forward; lm_head and loss stay until the next step's have
/// been made"
[[nodiscard]] std::string describe_loop(const TrainingLoop& loop);

}  // namespace stowage
