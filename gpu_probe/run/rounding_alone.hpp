// What rounding decides, where two machines that round in other orders are held against each other.
//
// Adam and its kin divide a gradient by its own size: of one that is 0 but for rounding, as that of
// a bias before a normalisation, they make a step of full length in a direction that rounding
// chose. Such elements of parameters say nothing about a plan and are left out of a comparison that
// has a tolerance; one that has none compares every bit.
#pragma once

#include <map>
#include <vector>

#include "estimator/step/step_graph.hpp"
#include "gpu_probe/run/step_results.hpp"

namespace stowage {

/// By parameter, and by its float32 copy where the optimizer has one; true: not to be compared.
/// Parameters whose update is proportional to the gradient are not in it, nor those whose gradient
/// is not among the results. What counts as rounding: rounding_share() (tolerance.hpp).
using ElementMasks = std::map<StorageId, std::vector<bool>>;
[[nodiscard]] ElementMasks rounding_alone(const StepGraph& graph, const StepResults& expected);

}  // namespace stowage
