// A step whose kernels round another way: what the numbers of another machine may differ by.
//
// Machines that add up in other orders are apart by roundoff after each kernel. Through most steps
// that stays small. Where a step decides by its numbers it does not: a value that is 0 but for
// rounding passes a ReLU on one machine and not on the other, and of two equal values now one is a
// window's maximum, now the other. One such value moves a gradient that is the sum of a few hundred
// by percents, with no mistake anywhere. How far that can go depends on network, batch and numbers;
// so it is tried: the host runs the step once more, with the results of all kernels that add up
// moved by as much as their order moves them.
#pragma once

#include <cstdint>
#include <span>

#include "estimator/step/step_graph.hpp"
#include "gpu_probe/backend/backend.hpp"

namespace stowage {

/// Moves what the node wrote, if it is of a kernel that adds up (products, convolutions,
/// normalisations, attention, recurrent layers): each number by at most a few roundoffs
/// (tolerance.hpp) of its tensor's root mean square, up or down as `seed` and its place have it.
/// Other kernels' results are left alone: what they pick or move is found again by its bits.
void perturb_rounding(const StepGraph& graph, const KernelNode& node,
                     std::span<const TensorArgument> written, std::uint64_t seed);

}  // namespace stowage
