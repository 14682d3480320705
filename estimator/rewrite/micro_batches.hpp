// A step of several micro-batches (gradient accumulation) out of a step of one.
//
// Forward, loss and backward run once for each part of the batch; what each part makes has storages
// of its own, named "conv1@0", "conv1@1", ... Parameters, buffers, what waits prefetched, zero_grad
// and the update are there once. StepGraph::micro_batch says which is which.
//
//   one    zero_grad | forward loss backward                                      | update
//   three  zero_grad | forward@0 loss@0 backward@0 | forward@1 ... | forward@2 ...| update
//
// The first micro-batch leaves its gradients where the update finds them (StepGraph::gradients). A
// later one adds its own to them where they arrive (GradientArrival), in place, and makes no copy.
// Every micro-batch draws random numbers of its own: the attribute `seed` grows by a fixed stride.
// The gradient that a loss starts from is divided by the number of micro-batches, by the attribute
// `scale` of the kernels named *_backward in kernel_list.hpp that begin at a loss. What the
// script's variables keep, they keep until the next micro-batch's value takes its place; later
// inputs are loaded before the first node of their micro-batch.
#pragma once

#include <cstddef>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// The nodes of the step that with_micro_batches makes, at most: gradients that are added, and
/// copies that are not made, may change it by a node a parameter and micro-batch.
[[nodiscard]] std::size_t nodes_with_micro_batches(const StepGraph& step, std::int64_t count);

/// More nodes than this are refused: what is asked for is a mistake, or needs a loop of its own.
inline constexpr std::size_t most_rewritten_nodes = 20'000'000;

/// `step` is one micro-batch's. Everything about a node or a storage that is not named above,
/// its origin for one, is that of the one which it repeats. Linear in the nodes that come out.
/// Errors: the step has several micro-batches already, or recomputed values; `count` is not
/// positive, or makes a step past most_rewritten_nodes; the step's `micro_batch` does not say what
/// is repeated.
[[nodiscard]] Result<StepGraph> with_micro_batches(StepGraph step, std::int64_t count);

}  // namespace stowage
