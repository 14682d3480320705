// Rewrites a step of one micro-batch into a step of several (gradient accumulation).
//
// Forward, loss and backward run once for each micro-batch, and the storages that they make exist
// once for each, named "conv1@0", "conv1@1", ... Parameters, buffers, prefetched inputs, zero_grad
// and the update exist once. StepGraph::micro_batch says which nodes and storages are repeated.
//
//   one    zero_grad | forward loss backward                                      | update
//   three  zero_grad | forward@0 loss@0 backward@0 | forward@1 ... | forward@2 ...| update
//
// The first micro-batch makes the gradients that the update reads (StepGraph::gradients). A later
// one adds its gradients to them in place, where they arrive (GradientArrival), without a copy.
// Every micro-batch draws different random numbers: the attribute `seed` grows by a fixed stride.
// The gradient from which backward starts is divided by the number of micro-batches, through the
// attribute `scale` of the kernels named *_backward in kernel_list.hpp that begin at a loss. A
// storage that a script's variable holds lives until the next micro-batch assigns that variable.
// Later inputs are loaded before the first node of their micro-batch.
#pragma once

#include <cstddef>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// An estimate of the number of nodes in with_micro_batches()'s result. Additions of gradients, and
/// copies that are not needed, may change it by one node per parameter and micro-batch.
[[nodiscard]] std::size_t nodes_with_micro_batches(const StepGraph& step, std::int64_t count);

/// A result with more nodes is refused.
inline constexpr std::size_t most_rewritten_nodes = 20'000'000;

/// `step`: one micro-batch. A repeated node or storage is equal to the original except for the
/// changes above; it has the same origin, for example. Linear in the nodes of the result.
/// Errors: the step already has several micro-batches, or recomputed values; `count` is not
/// positive, or the result would exceed most_rewritten_nodes; the step's `micro_batch` is not set.
[[nodiscard]] Result<StepGraph> with_micro_batches(StepGraph step, std::int64_t count);

}  // namespace stowage
