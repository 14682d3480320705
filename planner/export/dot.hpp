// Drawings for graphviz: a model's layers, or a plan's kernels with what becomes of each tensor.
//
// Of a plan: one node a kernel, in its order, filled by device; one edge a use of a tensor, from
// the kernel that wrote it last (or from the storage itself, where the step found it) to the one
// that reads it. A black edge stayed where it was, a red one crosses the link, with its size; a
// blue one is read on the host. Of a step with an order of its own, dashed grey edges are the
// control dependencies that make a runtime keep to it.
#pragma once

#include <string>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

[[nodiscard]] std::string export_dot(const ModelGraph& model);

/// Errors: the plan is for another machine than one GPU and its host.
[[nodiscard]] Result<std::string> export_dot(const Plan& plan);

}  // namespace stowage
