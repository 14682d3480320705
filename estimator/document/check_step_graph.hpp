// Checks of a step graph that was read from a file: the invariants that all later stages rely on.
//
// Graphs from lower() always fulfil them. Sizing, lifetimes, the runtimes' allocators, the planner
// and the executor assume them without checking.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// The first of these invariants that does not hold, with the node or storage; none: all hold.
///   names      node names are unique, and so are storage names
///   lists      inputs and losses are as many for each micro-batch, gradients one a parameter
///   order      micro-batches follow one another; nothing transient is read before it is written
///   storages   what is loaded, made or replaced by a node can be; a temporary belongs to one node,
///              but for those that nodes of a library's update carry from one to the next
///   views      lie within their storage, in the `stowage` set as contiguous wholes
///   kernels    arguments and attributes that other stages read before a kernel runs are as the
///              kernel wants them: cuDNN's attention for its workspace, others for initial values
/// Precondition: all ids are in range. `batch`: the batch at which the step was recorded; none: the
/// step serves every batch from 1 on. O(nodes + storages + arguments).
[[nodiscard]] std::optional<Diagnostic> step_graph_problem(const StepGraph& graph,
                                                           const std::vector<Parameter>& parameters,
                                                           std::optional<std::int64_t> batch);

/// Why a tensor does not lie within its storage, as above; `whose` it is: "a saved tensor".
[[nodiscard]] std::optional<Diagnostic> view_problem(const StepGraph& graph, const TensorView& view,
                                                     std::string_view whose,
                                                     std::optional<std::int64_t> batch);

}  // namespace stowage
