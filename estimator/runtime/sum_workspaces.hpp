// The workspaces of a step's sums in PyTorch (workspace/sum_scratch.hpp), which depend on the card
// and not affinely on the batch: engines of a SizedStep, as those of convolutions are.
#pragma once

#include <cstdint>
#include <optional>

#include "estimator/card/card.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/workspace/sum_scratch.hpp"

namespace stowage {

/// What the node sums in PyTorch: a bias's gradient, a gradient summed to a smaller shape, or a
/// recorded aten::sum over axes. None: another kernel. Throws ArithmeticOverflow.
[[nodiscard]] std::optional<TensorSum> tensor_sum(const KernelNode& node, std::int64_t batch);

/// Whether it is such a sum, in a step of PyTorch's: at some batch on some card it wants a
/// workspace.
[[nodiscard]] bool takes_sum_workspace(const StepGraph& graph, const KernelNode& node);

/// The step with an engine for each sum that allocates a buffer on the card. Other kernel sets'
/// steps, and steps that have these engines already, come back as they are.
[[nodiscard]] SizedStep with_sum_workspaces(SizedStep step, const Card& card);

}  // namespace stowage
