// Which nodes have to run before which, in any order of a step's nodes: data hazards over storages.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// By node, ascending and each once: the earlier nodes that have to stay before it. These are the
/// last writer of what it reads; of what it writes the last writer and who has read since; and, of
/// a foreign kernel, whose state nobody knows, the foreign kernel before. In-place results, views
/// and running statistics share a storage, so that they are among these; random kernels carry their
/// seed with them and depend on nothing. Linear in the nodes' arguments, but for sorting.
[[nodiscard]] std::vector<std::vector<std::int32_t>> node_dependences(const StepGraph& step);

}  // namespace stowage
