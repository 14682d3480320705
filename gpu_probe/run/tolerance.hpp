// How far a step's results may differ on two machines that sum in another order, by the formats
// that it computes in.
//
// Each kernel rounds its result to the format, by up to half of the format's spacing relative to
// the result (the unit roundoff u). With another order of sums some roundings go the other way, and
// later kernels go on from there. Products of float32 that may run in TF32 have factors rounded to
// 11 bits, so their u is that of float16. The tolerance is relative to a tensor's largest value
// (Difference::relative):
//
//   float64           1e-9
//   float32           1e-3
//   TF32, float16     32 u = 1.6e-2
//   bfloat16          32 u = 1.3e-1
//
// Where a step decides by its numbers, results may be further apart; then the tolerance is measured
// (perturbed_rounding.hpp).
//
// The tolerances of float32 and float64 are far above their u (6e-8, 1e-16), since a library may
// compute a convolution or a product by an algorithm that loses digits.
#pragma once

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// The unit roundoff of a floating-point result of the node.
[[nodiscard]] double roundoff_of(const StepGraph& graph, const KernelNode& node, DataType result);

/// The unit roundoff of the coarsest format that a kernel of the step computes in.
[[nodiscard]] double coarsest_roundoff(const StepGraph& graph);

/// The RunOptions::tolerance for a GPU that is compared with the host.
[[nodiscard]] double gpu_tolerance(const StepGraph& graph);

/// An element of a gradient counts as rounding only, if its share of the step's largest gradient
/// element is no more than this (rounding_masks.hpp): 1e-5, in coarser formats 4 u.
[[nodiscard]] double rounding_share(const StepGraph& graph);

}  // namespace stowage
