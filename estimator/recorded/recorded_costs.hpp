// What the layers of a recorded step compute and keep, once its calls are completed.
#pragma once

#include "estimator/document/step_document.hpp"

namespace stowage {

/// Fills in the costs of all layers, and adds a row for what computes outside of the modules that
/// the recorder lists: the loss. A document without layers is left as it is, and so is one whose
/// sums go past 64 bits.
void add_recorded_costs(StepDocument& document);

}  // namespace stowage
