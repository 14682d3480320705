// The nodes of a step in another order that computes the same.
//
//   given   a  b  c  d  e        runs [a, b] [d, d] [c, c] [e, e]
//   result  a  b  d  c  e
//
// An order is written as runs of the given one, each by the names of its first and its last node,
// so that a few moves take a few words. Every node stays behind those that it depends on
// (node_dependences.hpp): all numbers are the same to the last bit.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// The runs of an order that names nodes by their places in the given one. Precondition: a
/// permutation.
[[nodiscard]] std::vector<NodeRun> runs_of_order(const StepGraph& step,
                                                 const std::vector<std::int32_t>& order);

/// Recorded in the settings (LoweringSettings::order). Comes after all other rewriting: which nodes
/// are one micro-batch's is no longer said. An empty order: the step as it is. Linear in the nodes'
/// arguments, but for sorting.
/// Errors: the kernels are not our own executor's (other runtimes run their own order); the step
/// has such an order already; the runs do not name each node once; a node would run before one that
/// it depends on.
[[nodiscard]] Result<StepGraph> with_order(StepGraph step, std::vector<NodeRun> order);

}  // namespace stowage
