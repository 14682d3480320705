// Changes the order of a step's nodes to another one that computes the same.
//
//   given   a  b  c  d  e        runs [a, b] [d, d] [c, c] [e, e]
//   result  a  b  d  c  e
//
// An order is written as runs of the given order, each by the names of its first and last node, so
// that a few moves need only a short text. Every node stays after those that it depends on
// (node_dependences.hpp), so that all results are the same to the last bit.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// The runs of `order`, which lists node numbers. Precondition: it is a permutation.
[[nodiscard]] std::vector<NodeRun> runs_of_order(const StepGraph& step,
                                                 const std::vector<std::int32_t>& order);

/// Sets LoweringSettings::order. Must be the last rewrite, since StepGraph::micro_batch is lost. An
/// empty order changes nothing. Linear in the nodes' arguments, except for sorting.
/// Errors: the kernels are not our own executor's (other runtimes use their own order); the step
/// already has such an order; the runs do not contain each node exactly once; a node would run
/// before one that it depends on.
[[nodiscard]] Result<StepGraph> with_order(StepGraph step, std::vector<NodeRun> order);

}  // namespace stowage
