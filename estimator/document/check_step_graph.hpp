// What everything that takes a step graph relies on, checked where a graph comes from outside.
//
// `lower` makes no other graphs. Sizing, lifetimes, the runtimes' allocators, the planner and the
// executor assume it without looking again.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// The first of these that does not hold, naming the node or the storage; none: all do.
///   names      node names are unique, storage names are
///   lists      inputs and losses are as many for each micro-batch, gradients one a parameter
///   order      micro-batches follow one another; nothing transient is read before it is written
///   storages   what is loaded, made or replaced by a node can be; a temporary belongs to one node
///   views      lie within their storage, in the `stowage` set as contiguous wholes
///   kernels    some have arguments and attributes that are looked at before they run: cuDNN's
///              attention for its workspace, others for the values that a run starts from
/// Precondition: all ids are in range. `batch`: at which the step was recorded; none: at any from 1
/// on. O(nodes + storages + arguments).
[[nodiscard]] std::optional<Diagnostic> step_graph_problem(const StepGraph& graph,
                                                           const std::vector<Parameter>& parameters,
                                                           std::optional<std::int64_t> batch);

}  // namespace stowage
