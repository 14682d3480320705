// The costs of the layers of a recorded step: their operations and saved bytes.
#pragma once

#include "estimator/document/step_document.hpp"

namespace stowage {

/// Sets the costs of all layers, and adds rows for computation outside the modules that the
/// recorder lists, such as the loss. Leaves a document without layers, or whose sums exceed 64
/// bits, unchanged. Precondition: the calls are completed.
void add_recorded_costs(StepDocument& document);

}  // namespace stowage
