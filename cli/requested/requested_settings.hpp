// What the options of the process around a step mean for the runtime that runs it.
#pragma once

#include "cli/requested/requested_step.hpp"
#include "estimator/runtime/check_settings.hpp"

namespace stowage {

/// Errors: options of another runtime than `runtime`; a CUDA release that cannot load lazily.
[[nodiscard]] Result<CheckSettings> requested_settings(const StepRequest& request, Runtime runtime,
                                                       const RequestedCard& card);

}  // namespace stowage
