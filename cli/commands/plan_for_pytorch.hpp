// `plan --for pytorch`: the part of the command `plan` whose plans PyTorch carries out.
#pragma once

#include "cli/options/request.hpp"
#include "cli/output/rendered_answer.hpp"

namespace stowage {

[[nodiscard]] Result<RenderedAnswer> run_pytorch_planning(const PlanningRequest& request);

}  // namespace stowage
