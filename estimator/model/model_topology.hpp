// The topology of a model as a graph: a vertex for each operator, an edge for each use of a tensor.
//
// The graph itself is a boost::adjacency_list inside model_topology.cpp.
#pragma once

#include <span>
#include <vector>

#include "estimator/base/id.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

/// An edge: `consumer` reads an output of `producer`.
struct TensorUse {
  OperatorId producer;
  OperatorId consumer;
  auto operator<=>(const TensorUse&) const = default;
};

struct ExecutionOrder {
  std::vector<OperatorId> order;  ///< the operators that are neither in a cycle nor depend on one
                                  /// A cycle, in which each operator reads the previous one and the
                                  /// first reads the last; empty:
  /// there is none.
  std::vector<OperatorId> cycle;
};

/// The topological order that always takes the lowest number of the operators that may come next.
/// If the numbers are in topological order, it is the ascending order. O((V + E) log V).
[[nodiscard]] ExecutionOrder execution_order(std::size_t operators,
                                             std::span<const TensorUse> uses);

/// The uses of a model's tensors, in the order of the consumers and their inputs.
[[nodiscard]] std::vector<TensorUse> tensor_uses(const ModelGraph& model);

/// The operators that read each tensor, in execution order, one entry an operator.
[[nodiscard]] std::vector<std::vector<OperatorId>> consumers(const ModelGraph& model);

}  // namespace stowage
