// How far apart a step's results may be on two machines that add up in other orders, by the formats
// that it computes in.
//
// Each kernel rounds its result to the format, by up to half of its spacing relative to the result
// (the unit roundoff u); in another order of the sums the rounding goes the other way now and then,
// and what follows goes on from there. The products of float32 that may run in TF32 have factors
// rounded to its 11 bits, so that u is that of float16. What is allowed is relative to a tensor's
// largest value (Difference::relative):
//
//   float64           1e-9
//   float32           1e-3
//   TF32, float16     32 u = 1.6e-2
//   bfloat16          32 u = 1.3e-1
//
// Where a step decides by its numbers they may be further apart; what is allowed then is measured
// (other_rounding.hpp).
//
// float32's and float64's are far above their u (6e-8, 1e-16), since a library may compute a
// convolution or a product by an algorithm that loses digits.
#pragma once

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// The unit roundoff of a floating-point result of the node.
[[nodiscard]] double roundoff_of(const StepGraph& graph, const KernelNode& node, DataType result);

/// The unit roundoff of the coarsest format that a kernel of the step computes in.
[[nodiscard]] double coarsest_roundoff(const StepGraph& graph);

/// For RunOptions::tolerance where a GPU is held against the host.
[[nodiscard]] double gpu_tolerance(const StepGraph& graph);

/// Of a gradient's element over the largest of all gradients of the step: below it the element is
/// rounding alone (rounding_alone.hpp). 1e-5; in coarser formats 4 u.
[[nodiscard]] double rounding_share(const StepGraph& graph);

}  // namespace stowage
