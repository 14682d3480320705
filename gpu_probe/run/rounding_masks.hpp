// Elements of results that only rounding decides, when two machines that sum in another order are
// compared.
//
// Optimizers such as Adam divide a gradient by its own size. Where a gradient is 0 except for
// rounding, such as that of a bias before a normalisation, they make a step of full length whose
// direction rounding decides. Such elements of parameters say nothing about a plan. A comparison
// that has a tolerance leaves them out; one without compares every bit.
#pragma once

#include <map>
#include <vector>

#include "estimator/step/step_graph.hpp"
#include "gpu_probe/run/step_results.hpp"

namespace stowage {

/// By parameter, and by its float32 copy where the optimizer has one. True: the element is not
/// compared. Parameters whose update is proportional to the gradient have no mask, nor those whose
/// gradient is not among the results. What counts as rounding: rounding_share() (tolerance.hpp).
using ElementMasks = std::map<StorageId, std::vector<bool>>;
[[nodiscard]] ElementMasks rounding_masks(const StepGraph& graph, const StepResults& expected);

}  // namespace stowage
