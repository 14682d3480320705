// The plan that a step which does not fit could run by, as a command to type.
#pragma once

#include <optional>
#include <string>

#include "cli/requested/requested_step.hpp"

namespace stowage {

/// nullopt: no plan is made for such a step (several GPUs, accumulated gradients, settings that
/// neither kernel set serves), or the card leaves no room for an arena.
[[nodiscard]] std::optional<std::string> plan_advice(const StepRequest& request,
                                                     const RequestedStep& requested,
                                                     const Card& card);

}  // namespace stowage
