// Plans for PyTorch as tests of their validator want them: a step, a card that is too small for it,
// and the proposals.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "planner/pytorch/pytorch_plan_file.hpp"
#include "planner/pytorch/pytorch_plans.hpp"
#include "planner/validate_pytorch/recount.hpp"

namespace stowage::testing {

/// Four blocks that can run again, and a head: small enough for thousands of changed plans.
[[nodiscard]] ModelGraph small_blocks();

/// `left`: of the card for the allocator.
[[nodiscard]] PytorchRequest request_for(const ModelGraph& model, std::int64_t batch, Bytes left,
                                         Mode mode = Mode::train,
                                         const std::string& optimizer = "adamw");

/// 48 linear layers and a head: the optimizer has most of the step's memory.
[[nodiscard]] ModelGraph wide_layers();

/// Of tests/recorded/stages.json: rows of nn.Sequentials, and modules in modules.
[[nodiscard]] PytorchRequest recorded_stages(std::int64_t batch, Bytes left);

/// What the plan of that name is, or the first whose name begins so; throws where there is none.
[[nodiscard]] PytorchPlan proposal_of(const PytorchRequest& request, const std::string& name);

/// The request with another step, and the plan as of that step.
void change_step(PytorchRequest& request, PytorchPlan& plan, StepGraph graph);

/// The validator's checks of a plan's text, after its reader. Errors: the reader's.
[[nodiscard]] Result<PlanValidation> recount_text(const PytorchRequest& request,
                                                  const std::string& text);

/// "bounds: p.json:3:4: ..." of the checks that failed, but those that were not made.
[[nodiscard]] std::vector<std::string> failed_checks(const PlanValidation& validation);

}  // namespace stowage::testing
