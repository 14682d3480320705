// The topology of a model as a graph: one vertex an operator, one edge a use of a tensor.
//
// The graph itself is a boost::adjacency_list inside model_topology.cpp; here is what the stages
// ask of it.
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
  std::vector<OperatorId> order;  ///< of all operators that are in no cycle and behind none
  std::vector<OperatorId>
      cycle;  ///< empty, or a cycle: each reads the one before, the first the last
};

/// The topological order that is nearest to the operators' numbers: of those that could come next,
/// the lowest does. Numbers that are in topological order come out as they are. O((V + E) log V).
[[nodiscard]] ExecutionOrder execution_order(std::size_t operators,
                                             std::span<const TensorUse> uses);

/// The uses of a model's tensors, in the order of the consumers and their inputs.
[[nodiscard]] std::vector<TensorUse> tensor_uses(const ModelGraph& model);

/// The operators that read each tensor, in execution order, one entry an operator.
[[nodiscard]] std::vector<std::vector<OperatorId>> consumers(const ModelGraph& model);

}  // namespace stowage
