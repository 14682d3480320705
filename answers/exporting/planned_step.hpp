// The step of a plan, asked about again as other programs run it: with PyTorch's kernels,
// everything on the GPU but what the program itself moves.
#pragma once

#include <string>
#include <vector>

#include "answers/exporting/export.hpp"
#include "answers/subject/step_setup.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

struct PlannedStep {
  CheckQuestion question;  ///< its card's name is not looked up: `setup` has the plan's own card
  StepSetup setup;
  bool reruns_blocks = false;  ///< all of them, of a step's file, whose question cannot say it
  std::vector<std::string>
      unexpressed;  ///< what of the plan the program cannot carry out, a line each
};

/// `moves_activations`: the program has a setting that keeps saved tensors on the host; it is asked
/// for where the plan moves activations. Errors: the plan holds no description; its optimizer has
/// no name; set_up_step's.
[[nodiscard]] Result<PlannedStep> set_up_planned_step(const Plan& plan, bool moves_activations);

}  // namespace stowage
