#include "planner/bounds/cut_network.hpp"

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <boost/property_map/property_map.hpp>
#include <limits>
#include <utility>

namespace stowage {

namespace {

using FlowGraph =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                       boost::no_property, std::int32_t, std::int32_t>;
using FlowEdge = boost::graph_traits<FlowGraph>::edge_descriptor;

struct WorkLimitReached {};

// Residual capacities by edge. They count how often they are looked at, since there are networks on
// which push-relabel takes time in the square of the nodes.
struct BoundedResidual {
  using key_type = FlowEdge;
  using value_type = std::int64_t;
  using reference = std::int64_t&;
  using category = boost::lvalue_property_map_tag;

  std::int64_t* residual = nullptr;
  std::int64_t* work = nullptr;

  std::int64_t& operator[](const FlowEdge& edge) const {
    if (--*work < 0) throw WorkLimitReached();
    return residual[static_cast<std::size_t>(edge.idx)];
  }
  friend std::int64_t get(const BoundedResidual& map, const FlowEdge& edge) { return map[edge]; }
  friend void put(const BoundedResidual& map, const FlowEdge& edge, std::int64_t value) {
    map[edge] = value;
  }
};

// By node: the terminal that infinite arcs tie it to, or itself. With these nodes contracted all
// flows are finite.
struct ContractedNodes {
  std::vector<CutNetwork::Node> to;  // by node: a terminal, or the node itself
  bool contradictory = false;
};

ContractedNodes contract_infinite_arcs(const CutNetwork& network) {
  const auto nodes = static_cast<std::size_t>(network.nodes());
  std::vector<std::vector<CutNetwork::Node>> forward(nodes), backward(nodes);
  for (const CutNetwork::Arc& arc : network.arcs()) {
    if (arc.capacity != CutNetwork::infinite) continue;
    forward[static_cast<std::size_t>(arc.from)].push_back(arc.to);
    backward[static_cast<std::size_t>(arc.to)].push_back(arc.from);
  }
  ContractedNodes contracted;
  for (CutNetwork::Node v = 0; v < network.nodes(); ++v) contracted.to.push_back(v);
  const auto walk = [&](const auto& next, CutNetwork::Node terminal) {
    std::vector<CutNetwork::Node> stack = next[static_cast<std::size_t>(terminal)];
    while (!stack.empty()) {
      const CutNetwork::Node v = stack.back();
      stack.pop_back();
      CutNetwork::Node& to = contracted.to[static_cast<std::size_t>(v)];
      if (to == terminal) continue;
      if (to != v || v <= CutNetwork::sink) {  // the other terminal's
        contracted.contradictory = true;
        return;
      }
      to = terminal;
      const auto& further = next[static_cast<std::size_t>(v)];
      stack.insert(stack.end(), further.begin(), further.end());
    }
  };
  walk(forward, CutNetwork::source);
  if (!contracted.contradictory) walk(backward, CutNetwork::sink);
  return contracted;
}

// Edges as Boost wants them: grouped by tail, each with a reverse of capacity 0 of its own.
struct FlowEdges {
  std::vector<std::pair<std::int32_t, std::int32_t>> ends;
  std::vector<std::int64_t> capacity;
  std::vector<std::size_t> reverse;
};

FlowEdges grouped(const std::vector<CutNetwork::Arc>& arcs, CutNetwork::Node nodes) {
  std::vector<std::size_t> next(static_cast<std::size_t>(nodes) + 1, 0);
  for (const CutNetwork::Arc& arc : arcs) {
    ++next[static_cast<std::size_t>(arc.from) + 1];
    ++next[static_cast<std::size_t>(arc.to) + 1];
  }
  for (std::size_t v = 1; v < next.size(); ++v) next[v] += next[v - 1];
  FlowEdges edges;
  edges.ends.resize(2 * arcs.size());
  edges.capacity.resize(2 * arcs.size());
  edges.reverse.resize(2 * arcs.size());
  for (const CutNetwork::Arc& arc : arcs) {
    const std::size_t there = next[static_cast<std::size_t>(arc.from)]++;
    const std::size_t back = next[static_cast<std::size_t>(arc.to)]++;
    edges.ends[there] = {arc.from, arc.to};
    edges.ends[back] = {arc.to, arc.from};
    edges.capacity[there] = arc.capacity;
    edges.reverse[there] = back;
    edges.reverse[back] = there;
  }
  return edges;
}

std::int64_t maximum_flow(const FlowEdges& edges, CutNetwork::Node nodes, std::int64_t& work) {
  const FlowGraph graph(boost::edges_are_sorted, edges.ends.begin(), edges.ends.end(), nodes);
  std::vector<FlowEdge> reverse;
  for (const std::size_t other : edges.reverse) {
    reverse.emplace_back(edges.ends[other].first, static_cast<std::int32_t>(other));
  }
  std::vector<std::int64_t> residual(edges.capacity.size());
  const auto index = get(boost::edge_index, graph);
  return boost::push_relabel_max_flow(
      graph, CutNetwork::source, CutNetwork::sink,
      boost::make_iterator_property_map(edges.capacity.begin(), index),
      BoundedResidual{residual.data(), &work},
      boost::make_iterator_property_map(reverse.begin(), index), get(boost::vertex_index, graph));
}

}  // namespace

void CutNetwork::add_arc(Node from, Node to, std::int64_t capacity) {
  if (from == to || capacity == 0 || from == sink || to == source) return;
  arcs_.push_back({from, to, capacity});
}

std::optional<CutValue> least_cut(const CutNetwork& network, std::int64_t& work) {
  const ContractedNodes contracted = contract_infinite_arcs(network);
  if (contracted.contradictory) return CutValue{.infinite = true};
  std::int64_t all = 1;  // above every finite cut
  for (const CutNetwork::Arc& arc : network.arcs()) {
    if (arc.capacity != CutNetwork::infinite) all += arc.capacity;
  }
  std::int64_t constant = 0;
  std::vector<CutNetwork::Arc> arcs;
  std::vector<std::int64_t> in(contracted.to.size(), 0), out(contracted.to.size(), 0);
  for (CutNetwork::Arc arc : network.arcs()) {
    arc.from = contracted.to[static_cast<std::size_t>(arc.from)];
    arc.to = contracted.to[static_cast<std::size_t>(arc.to)];
    if (arc.from == arc.to || arc.from == CutNetwork::sink || arc.to == CutNetwork::source) {
      continue;
    }
    if (arc.capacity == CutNetwork::infinite) arc.capacity = all;
    if (arc.from == CutNetwork::source && arc.to == CutNetwork::sink) {
      constant += arc.capacity;
    } else if (arc.from == CutNetwork::source) {
      in[static_cast<std::size_t>(arc.to)] += arc.capacity;
    } else if (arc.to == CutNetwork::sink) {
      out[static_cast<std::size_t>(arc.from)] += arc.capacity;
    } else {
      arcs.push_back(arc);
    }
  }
  for (CutNetwork::Node v = CutNetwork::sink + 1; v < network.nodes(); ++v) {
    const auto at = static_cast<std::size_t>(v);
    if (in[at] > 0) arcs.push_back({CutNetwork::source, v, in[at]});
    if (out[at] > 0) arcs.push_back({v, CutNetwork::sink, out[at]});
  }
  if (arcs.empty()) return CutValue{.value = constant};
  try {
    const FlowEdges edges = grouped(arcs, network.nodes());
    return CutValue{.value = constant + maximum_flow(edges, network.nodes(), work)};
  } catch (const WorkLimitReached&) {
    return std::nullopt;
  }
}

}  // namespace stowage
