// PlanAdvice: the plan by which a step that does not fit could run.
#pragma once

#include <optional>

#include "answers/subject/step_setup.hpp"

namespace stowage {

/// The same model, step and card, but for what these change.
struct PlanAdvice {
  Runtime runtime = executed_runtime;   ///< that the plan is for
  bool is_usual = true;                 ///< a plan is for that runtime where none is asked for
  bool drops_pytorch_settings = false;  ///< only PyTorch's kernels have some of those asked for
};

/// None: no plan is made for such a step (several GPUs, accumulated gradients, settings that
/// neither kernel set serves), or the card leaves no room for an arena.
[[nodiscard]] std::optional<PlanAdvice> plan_advice(const StepQuestion& question,
                                                    const StepSetup& setup);

}  // namespace stowage
