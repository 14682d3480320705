// --cuda-version, --pytorch-version, --module-loading and --calibration: the software around the
// step.
#pragma once

#include "cli/arguments.hpp"
#include "cli/json_value.hpp"
#include "estimator/card/card.hpp"
#include "estimator/card/software_stack.hpp"

namespace stowage {

/// Errors: a version that is none, and lazy loading before there was any.
[[nodiscard]] Result<SoftwareStack> requested_stack(const Arguments& arguments, Runtime runtime,
                                                    const Card& card);

/// The card as the calibration's file has it, or unchanged.
[[nodiscard]] Result<Card> calibrated_card(const Arguments& arguments, Card card);

[[nodiscard]] Json stack_json(const SoftwareStack& stack);

}  // namespace stowage
