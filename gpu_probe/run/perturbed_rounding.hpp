// Perturbs the rounding of a step's kernels, to see how far the results of another machine may
// differ.
//
// Machines that sum in another order differ by roundoff after each kernel. In most steps the
// difference stays small, but not where a step decides by its numbers. A value that is 0 except for
// rounding passes a ReLU on one machine and not on the other; of two equal values one or the other
// is a window's maximum. One such value can move a gradient, the sum of a few hundred values, by
// percents, with no mistake anywhere. How far this goes depends on the network, the batch and the
// numbers. So it is measured: the host runs the step once more and moves the results of all kernels
// that sum by as much as the order of their sums does.
#pragma once

#include <cstdint>
#include <span>

#include "estimator/step/step_graph.hpp"
#include "gpu_probe/backend/backend.hpp"

namespace stowage {

/// Moves the results of a node whose kernel sums (products, convolutions, normalisations,
/// attention, recurrent layers). Each number moves up or down by at most a few roundoffs
/// (tolerance.hpp) of its tensor's root mean square, as `seed` and its index decide. Results of
/// other kernels stay: they pick or move values without rounding.
void perturb_rounding(const StepGraph& graph, const KernelNode& node,
                      std::span<const TensorArgument> written, std::uint64_t seed);

}  // namespace stowage
