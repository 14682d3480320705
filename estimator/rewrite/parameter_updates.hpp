// The updates of a step of PyTorch's kernels, parameter by parameter: which gradient each needs,
// when that is whole, and which part of the update's kernels is its own.
//
// PyTorch updates lists of parameters in one kernel (foreach, fused). The same kernels over one
// parameter's tensors compute the same numbers: torch.optim's optimizers look at one parameter at a
// time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// A gradient that some node outside of the update writes.
struct WholeGradient {
  ParameterId parameter;
  StorageId gradient, value;  ///< `value`: the parameter
  std::size_t after = 0;      ///< the last node that writes the gradient
};

struct ParameterUpdates {
  std::vector<WholeGradient> gradients;  ///< in the order in which they become whole
  /// By storage: whose update alone uses it; none: several parameters', or none's.
  std::vector<ParameterId> owner;
  /// Why the update's nodes have no parts; none: they have.
  std::optional<std::string> undivided;
  /// Why an update cannot run as soon as its gradient is whole; none: it can.
  std::optional<std::string> late;
};

/// Errors: the step does not train, has several micro-batches or has early updates; gradients
/// persist from step to step; something else than the update reads a gradient (a norm by which all
/// are clipped), or the update reads what is no parameter, gradient or state. O(arguments).
[[nodiscard]] Result<ParameterUpdates> parameter_updates(const StepGraph& step);

/// The update's node, once for each group of parameters: with their tensors, and with those that
/// belong to no parameter. `group_of`: by ParameterId; below 0: left out. Empty: the node is for
/// none of them. Precondition: the updates have parts.
[[nodiscard]] std::map<std::int32_t, KernelNode> divided(const StepGraph& step,
                                                         const ParameterUpdates& updates,
                                                         const KernelNode& node,
                                                         const std::vector<std::int32_t>& group_of);

}  // namespace stowage
