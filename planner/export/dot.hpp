// Drawings for graphviz: a model's layers, or a plan by blocks of layers.
//
// Of a plan: a row a block of layers, at most a dozen (plan_rows.hpp), with a box for its kernels
// of forward and loss, of backward and of the update, filled by the side that runs them, and a box
// for what of it is copied to the host or from it, or read there. Edges carry bytes. A black edge
// stays on the GPU: each tensor counts once. A red one crosses the link: each copy counts, so that
// the red edges' bytes are the plan's copies. A blue one is read on the host. Of a step with an
// order of its own, dashed grey edges are the control dependencies that make a runtime keep to it.
// A legend says the same.
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
