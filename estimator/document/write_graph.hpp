// A step file's graph as text: storages, nodes, and what refers to them. A repeated micro-batch is
// written once, with how often it runs.
#pragma once

#include <string>

#include "estimator/document/write_tables.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage::step_text {

/// Adds to the tables what the graph refers to.
[[nodiscard]] std::string graph_text(const StepGraph& graph, Tables& tables);

}  // namespace stowage::step_text
