#include "estimator/model/model_topology.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <functional>
#include <queue>

namespace stowage {

namespace {

using Topology = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;

// Starts at any remaining operator and goes backwards along remaining operators until one repeats;
// the operators in between are a cycle.
std::vector<OperatorId> find_cycle(const Topology& graph, const std::vector<std::size_t>& waiting) {
  const auto first =
      std::find_if(waiting.begin(), waiting.end(), [](std::size_t inputs) { return inputs > 0; });
  std::vector<OperatorId> walk;
  std::vector<bool> seen(waiting.size());
  auto at = static_cast<std::size_t>(first - waiting.begin());
  while (!seen[at]) {
    seen[at] = true;
    walk.push_back(OperatorId::of(at));
    std::size_t next = at;
    bool found = false;
    for (const auto& edge : boost::make_iterator_range(boost::in_edges(at, graph))) {
      const std::size_t producer = boost::source(edge, graph);
      if (waiting[producer] == 0 || (found && producer >= next)) continue;
      next = producer;
      found = true;
    }
    at = next;
  }
  const auto begin = std::find(walk.begin(), walk.end(), OperatorId::of(at));
  std::vector<OperatorId> cycle(begin, walk.end());
  std::reverse(cycle.begin(), cycle.end());
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  return cycle;
}

ExecutionOrder identity_order(std::size_t operators) {
  ExecutionOrder result;
  result.order.reserve(operators);
  for (std::size_t v = 0; v < operators; ++v) result.order.push_back(OperatorId::of(v));
  return result;
}

}  // namespace

ExecutionOrder execution_order(std::size_t operators, std::span<const TensorUse> uses) {
  const bool in_order = std::all_of(
      uses.begin(), uses.end(), [](const TensorUse& use) { return use.producer < use.consumer; });
  if (in_order) return identity_order(operators);
  Topology graph(operators);
  for (const TensorUse& use : uses) {
    boost::add_edge(use.producer.index(), use.consumer.index(), graph);
  }
  std::vector<std::size_t> waiting(operators);  // inputs that are not there yet
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t v = 0; v < operators; ++v) {
    waiting[v] = boost::in_degree(v, graph);
    if (waiting[v] == 0) ready.push(v);
  }
  ExecutionOrder result;
  result.order.reserve(operators);
  while (!ready.empty()) {
    const std::size_t v = ready.top();
    ready.pop();
    result.order.push_back(OperatorId::of(v));
    for (const auto& edge : boost::make_iterator_range(boost::out_edges(v, graph))) {
      const std::size_t consumer = boost::target(edge, graph);
      if (--waiting[consumer] == 0) ready.push(consumer);
    }
  }
  if (result.order.size() < operators) result.cycle = find_cycle(graph, waiting);
  return result;
}

std::vector<TensorUse> tensor_uses(const ModelGraph& model) {
  std::vector<TensorUse> uses;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    for (const TensorId input : model.operators[i].inputs) {
      const OperatorId producer = model.tensor(input).producer;
      if (producer.valid()) uses.push_back({producer, OperatorId::of(i)});
    }
  }
  return uses;
}

std::vector<std::vector<OperatorId>> consumers(const ModelGraph& model) {
  std::vector<std::vector<OperatorId>> readers(model.tensors.size());
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    for (const TensorId input : model.operators[i].inputs) {
      std::vector<OperatorId>& list = readers[input.index()];
      if (list.empty() || list.back() != OperatorId::of(i)) list.push_back(OperatorId::of(i));
    }
  }
  return readers;
}

}  // namespace stowage
