#include "planner/solve/min_cut.hpp"

#include <algorithm>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/edmonds_karp_max_flow.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <boost/property_map/property_map.hpp>
#include <cassert>
#include <utility>

#include "estimator/base/bytes.hpp"
#include "planner/solve/folded_network.hpp"

namespace stowage {

std::int32_t FlowNetwork::add_node() {
  from_source.push_back(0);
  to_sink.push_back(0);
  return nodes() - 1;
}

void FlowNetwork::add_arc(std::int32_t from, std::int32_t to, Capacity capacity) {
  arcs.push_back({from, to, capacity});
}

namespace {

using Graph =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                       boost::no_property, std::int32_t, std::int32_t>;
using Edge = boost::graph_traits<Graph>::edge_descriptor;
using flow::first_node;
using flow::sink;
using flow::source;

// The network in the form that Boost needs: every arc with its reverse of capacity 0 beside it,
// grouped by tail. A pair of opposite arcs gets two reverses, which push-relabel recognises by
// their capacity of 0.
struct BoostNetwork {
  Graph graph;
  std::vector<Capacity> capacity;
  std::vector<Capacity> residual;
  std::vector<Edge> reverse;
};

Capacity infinity_of(const FlowNetwork& network) {
  Capacity sum = 1;
  const auto add = [&](Capacity capacity) {
    sum = checked_add(sum, capacity == infinite_capacity ? 0 : capacity);
  };
  for (const Capacity c : network.from_source) add(c);
  for (const Capacity c : network.to_sink) add(c);
  for (const FlowNetwork::Arc& arc : network.arcs) add(arc.capacity);
  assert(sum < (Capacity{1} << 62));
  return sum;
}

// Contracts nodes that every finite cut puts on one terminal's side into that terminal: those that
// infinite arcs reach from the source, and those that reach the sink over them. If the two sets
// meet, no cut is finite. Afterwards every flow is finite, so nothing overflows.
struct Contraction {
  std::vector<std::int32_t> vertex;  ///< by node: source, sink or its own
  bool infinite = false;
};

void assign_terminal(const std::vector<std::vector<std::int32_t>>& next, std::int32_t terminal,
                     std::vector<std::int32_t> stack, Contraction& result) {
  while (!stack.empty()) {
    const std::int32_t v = stack.back();
    stack.pop_back();
    std::int32_t& vertex = result.vertex[static_cast<std::size_t>(v)];
    if (vertex == terminal) continue;
    if (vertex < first_node) result.infinite = true;
    vertex = terminal;
    const auto& heads = next[static_cast<std::size_t>(v)];
    stack.insert(stack.end(), heads.begin(), heads.end());
  }
}

Contraction contract(const FlowNetwork& network) {
  Contraction result;
  const auto nodes = static_cast<std::size_t>(network.nodes());
  result.vertex.resize(nodes);
  std::vector<std::int32_t> pinned_source;
  std::vector<std::int32_t> pinned_sink;
  for (std::size_t v = 0; v < nodes; ++v) {
    result.vertex[v] = first_node + static_cast<std::int32_t>(v);
    if (network.from_source[v] == infinite_capacity) pinned_source.push_back(static_cast<int>(v));
    if (network.to_sink[v] == infinite_capacity) pinned_sink.push_back(static_cast<int>(v));
  }
  if (pinned_source.empty() && pinned_sink.empty()) return result;
  std::vector<std::vector<std::int32_t>> forward(nodes);
  std::vector<std::vector<std::int32_t>> backward(nodes);
  for (const FlowNetwork::Arc& arc : network.arcs) {
    if (arc.capacity != infinite_capacity) continue;
    forward[static_cast<std::size_t>(arc.from)].push_back(arc.to);
    backward[static_cast<std::size_t>(arc.to)].push_back(arc.from);
  }
  assign_terminal(forward, source, pinned_source, result);
  assign_terminal(backward, sink, pinned_sink, result);
  return result;
}

// The flow through source -> v -> sink is part of every maximum flow, so it is taken out: at most
// one terminal arc a node is left. Sink arcs come first, since Boykov-Kolmogorov searches the edge
// to the sink from the front of every neighbour of the source.
std::vector<HalfArc> half_arcs(const FlowNetwork& network, const Contraction& contraction,
                               Capacity& through) {
  const Capacity infinity = infinity_of(network);
  const auto nodes = static_cast<std::size_t>(network.nodes());
  std::vector<Capacity> in = network.from_source;
  std::vector<Capacity> out = network.to_sink;
  std::vector<HalfArc> halves;
  halves.reserve(2 * (nodes + network.arcs.size()));
  const auto add = [&](std::int32_t tail, std::int32_t head, Capacity capacity) {
    halves.push_back({tail, head, capacity});
    halves.push_back({head, tail, 0});
  };
  const auto vertex = [&](std::int32_t v) {
    return contraction.vertex[static_cast<std::size_t>(v)];
  };
  for (const FlowNetwork::Arc& arc : network.arcs) {
    const std::int32_t tail = vertex(arc.from);
    const std::int32_t head = vertex(arc.to);
    if (tail == sink || head == source || tail == head || arc.capacity == 0) continue;
    if (tail == source && head == sink)
      through += arc.capacity;  // finite: else contradictory
    else if (tail == source)
      in[static_cast<std::size_t>(arc.to)] += arc.capacity;
    else if (head == sink)
      out[static_cast<std::size_t>(arc.from)] += arc.capacity;
  }
  for (std::size_t v = 0; v < nodes; ++v) {
    const std::int32_t own = contraction.vertex[v];
    if (own == source) through += out[v];
    if (own == sink) through += in[v];
    if (own < first_node) continue;
    const Capacity direct = std::min(in[v], out[v]);
    through += direct;
    if (out[v] > direct) add(own, sink, out[v] - direct);
    if (in[v] > direct) add(source, own, in[v] - direct);
  }
  for (const FlowNetwork::Arc& arc : network.arcs) {
    const std::int32_t tail = vertex(arc.from);
    const std::int32_t head = vertex(arc.to);
    if (tail < first_node || head < first_node || tail == head || arc.capacity == 0) continue;
    add(tail, head, arc.capacity == infinite_capacity ? infinity : arc.capacity);
  }
  return halves;
}

BoostNetwork build(const std::vector<HalfArc>& halves, std::size_t vertices) {
  std::vector<std::int32_t> next(vertices + 1, 0);
  for (const HalfArc& half : halves) ++next[static_cast<std::size_t>(half.tail) + 1];
  for (std::size_t v = 0; v < vertices; ++v) next[v + 1] += next[v];

  BoostNetwork result;
  std::vector<std::pair<std::int32_t, std::int32_t>> ends(halves.size());
  std::vector<std::int32_t> place(halves.size());
  result.capacity.resize(halves.size());
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const std::int32_t at = next[static_cast<std::size_t>(halves[i].tail)]++;
    place[i] = at;
    ends[static_cast<std::size_t>(at)] = {halves[i].tail, halves[i].head};
    result.capacity[static_cast<std::size_t>(at)] = halves[i].capacity;
  }
  result.graph =
      Graph(boost::edges_are_sorted, ends.begin(), ends.end(), static_cast<std::int32_t>(vertices));
  result.residual.resize(halves.size());
  result.reverse.resize(halves.size());
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const std::size_t partner = i ^ 1U;
    result.reverse[static_cast<std::size_t>(place[i])] = Edge(halves[partner].tail, place[partner]);
  }
  return result;
}

// A residual map that counts its writes and ends the search when the limit is reached.
struct WorkLimitReached {};
struct CountedResidual {
  using key_type = Edge;
  using value_type = Capacity;
  using reference = Capacity&;
  using category = boost::lvalue_property_map_tag;

  Capacity* residual = nullptr;
  std::int64_t* work = nullptr;

  Capacity& operator[](const Edge& edge) const {
    return residual[static_cast<std::size_t>(edge.idx)];
  }
  friend Capacity get(const CountedResidual& map, const Edge& edge) { return map[edge]; }
  friend void put(const CountedResidual& map, const Edge& edge, Capacity value) {
    if (--*map.work < 0) throw WorkLimitReached();
    map[edge] = value;
  }
};

template <typename Residual>
Capacity boykov_kolmogorov(BoostNetwork& network, Residual residual) {
  const auto edge_index = get(boost::edge_index, network.graph);
  const auto vertex_index = get(boost::vertex_index, network.graph);
  return boost::boykov_kolmogorov_max_flow(
      network.graph, boost::make_iterator_property_map(network.capacity.begin(), edge_index),
      residual, boost::make_iterator_property_map(network.reverse.begin(), edge_index),
      vertex_index, source, sink);
}

Capacity push_relabel(BoostNetwork& network) {
  const auto edge_index = get(boost::edge_index, network.graph);
  return boost::push_relabel_max_flow(
      network.graph, source, sink,
      boost::make_iterator_property_map(network.capacity.begin(), edge_index),
      boost::make_iterator_property_map(network.residual.begin(), edge_index),
      boost::make_iterator_property_map(network.reverse.begin(), edge_index),
      get(boost::vertex_index, network.graph));
}

Capacity edmonds_karp(BoostNetwork& network) {
  const auto edge_index = get(boost::edge_index, network.graph);
  const auto vertex_index = get(boost::vertex_index, network.graph);
  std::vector<boost::default_color_type> color(num_vertices(network.graph));
  std::vector<Edge> predecessor(num_vertices(network.graph));
  return boost::edmonds_karp_max_flow(
      network.graph, source, sink,
      boost::make_iterator_property_map(network.capacity.begin(), edge_index),
      boost::make_iterator_property_map(network.residual.begin(), edge_index),
      boost::make_iterator_property_map(network.reverse.begin(), edge_index),
      boost::make_iterator_property_map(color.begin(), vertex_index),
      boost::make_iterator_property_map(predecessor.begin(), vertex_index));
}

Capacity run(BoostNetwork& network, FlowAlgorithm algorithm) {
  const auto counted = [&](std::int64_t& work) {
    return CountedResidual{network.residual.data(), &work};
  };
  switch (algorithm) {
    case FlowAlgorithm::boykov_kolmogorov: {
      std::int64_t work = INT64_MAX;
      return boykov_kolmogorov(network, counted(work));
    }
    case FlowAlgorithm::push_relabel:
      return push_relabel(network);
    case FlowAlgorithm::edmonds_karp:
      return edmonds_karp(network);
    case FlowAlgorithm::guarded:
      break;
  }
  // On residency networks an edge is written a handful of times, on the hard networks of the
  // literature on maximum flows thousands of times.
  std::int64_t work = 1'000'000 + 100 * static_cast<std::int64_t>(network.capacity.size());
  try {
    return boykov_kolmogorov(network, counted(work));
  } catch (const WorkLimitReached&) {
    return push_relabel(network);
  }
}

// Every node reached from `start` over edges for which `open` holds.
template <typename Open>
std::vector<bool> reach(const BoostNetwork& network, std::int32_t start, const Open& open) {
  std::vector<bool> seen(num_vertices(network.graph), false);
  std::vector<std::int32_t> stack{start};
  seen[static_cast<std::size_t>(start)] = true;
  while (!stack.empty()) {
    const std::int32_t v = stack.back();
    stack.pop_back();
    const auto [begin, end] = out_edges(v, network.graph);
    for (auto e = begin; e != end; ++e) {
      const std::int32_t to = target(*e, network.graph);
      if (!seen[static_cast<std::size_t>(to)] && open(*e)) {
        seen[static_cast<std::size_t>(to)] = true;
        stack.push_back(to);
      }
    }
  }
  return seen;
}

}  // namespace

// 1. Contracts infinite arcs and makes arcs with reverses, without the flow source -> v -> sink.
// 2. Folds equal components and finds a maximum flow.
// 3. Reads the sides off the residual network and not off the algorithm's colours, so that they are
// the same for all algorithms. (Boost's Boykov-Kolmogorov loses the residuals of the paths source
// -> v -> sink that it fills at once; half_arcs() leaves none.)
// 4. Sums the cut over all arcs, folded ones included.
MinimumCut minimum_cut(const FlowNetwork& network, FlowAlgorithm algorithm) {
  assert(network.from_source.size() == network.to_sink.size());
  MinimumCut result;
  const Contraction contraction = contract(network);
  result.infinite = contraction.infinite;
  if (result.infinite) return result;
  const std::vector<HalfArc> halves = half_arcs(network, contraction, result.value);
  const FoldedNetwork folded = fold(halves, network.nodes() + first_node);
  BoostNetwork boost_network = build(folded.halves, folded.like.size());
  const Capacity flow = folded.halves.empty() ? 0 : run(boost_network, algorithm);

  const auto residual = [&](const Edge& e) {
    return boost_network.residual[static_cast<std::size_t>(e.idx)];
  };
  const auto backwards = [&](const Edge& e) {
    return residual(boost_network.reverse[static_cast<std::size_t>(e.idx)]);
  };
  const std::vector<bool> from_source =
      reach(boost_network, source, [&](const Edge& e) { return residual(e) > 0; });
  const std::vector<bool> to_sink =
      reach(boost_network, sink, [&](const Edge& e) { return backwards(e) > 0; });
  const auto vertex_like = [&](std::int32_t vertex) {
    return static_cast<std::size_t>(folded.like[static_cast<std::size_t>(vertex)]);
  };
  const auto cut_by = [&](const std::vector<HalfArc>& arcs) {
    Capacity sum = 0;
    for (const HalfArc& arc : arcs) {
      const bool cut = from_source[vertex_like(arc.tail)] && !from_source[vertex_like(arc.head)];
      sum += cut ? arc.capacity : 0;
    }
    return sum;
  };
  assert(cut_by(folded.halves) == flow);
  (void)flow;
  result.value += cut_by(halves);
  result.side.resize(static_cast<std::size_t>(network.nodes()), CutSide::either);
  for (std::size_t v = 0; v < result.side.size(); ++v) {
    const std::size_t vertex = vertex_like(contraction.vertex[v]);
    if (from_source[vertex]) result.side[v] = CutSide::source;
    if (to_sink[vertex]) result.side[v] = CutSide::sink;
  }
  return result;
}

}  // namespace stowage
