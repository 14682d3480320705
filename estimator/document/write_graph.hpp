// Writes a graph as the step file's text: storages, nodes, and the lists that refer to them. A
// repeated micro-batch is written once, with the number of repetitions.
#pragma once

#include <string>

#include "estimator/document/write_tables.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage::step_text {

/// Adds the shapes, layouts, attributes and convolutions of the graph to the tables.
[[nodiscard]] std::string graph_text(const StepGraph& graph, Tables& tables);

}  // namespace stowage::step_text
