#include "planner/bounds/cut_network.hpp"

#include <doctest/doctest.h>

#include "planner/bounds/priced_bound.hpp"
#include "planner/bounds/tree_bound.hpp"
#include "planner/solve/min_cut.hpp"
#include "tests/planner/bounds/bound_problems.hpp"
#include "tests/planner/solve/random_problems.hpp"

namespace stowage::test {
namespace {

using Node = CutNetwork::Node;

/// The network in the form of the planner's oracle.
FlowNetwork flow_network_of(const CutNetwork& network) {
  FlowNetwork result;
  for (Node v = CutNetwork::sink + 1; v < network.nodes(); ++v) (void)result.add_node();
  const auto add = [](Capacity& sum, Capacity capacity) {
    const bool infinite = sum == infinite_capacity || capacity == infinite_capacity;
    sum = infinite ? infinite_capacity : sum + capacity;
  };
  for (const CutNetwork::Arc& arc : network.arcs()) {
    const std::int32_t from = arc.from - 2, to = arc.to - 2;
    if (arc.from == CutNetwork::source && arc.to == CutNetwork::sink) {
      const std::int32_t between = result.add_node();
      add(result.from_source[static_cast<std::size_t>(between)], arc.capacity);
      add(result.to_sink[static_cast<std::size_t>(between)], arc.capacity);
    } else if (arc.from == CutNetwork::source) {
      add(result.from_source[static_cast<std::size_t>(to)], arc.capacity);
    } else if (arc.to == CutNetwork::sink) {
      add(result.to_sink[static_cast<std::size_t>(from)], arc.capacity);
    } else {
      result.add_arc(from, to, arc.capacity);
    }
  }
  return result;
}

void compare_all(const CutNetwork& network) {
  std::int64_t work = most_cut_work;
  const auto cut = least_cut(network, work);
  REQUIRE(cut.has_value());
  const FlowNetwork same = flow_network_of(network);
  for (const FlowAlgorithm algorithm : {FlowAlgorithm::boykov_kolmogorov,
                                        FlowAlgorithm::push_relabel, FlowAlgorithm::edmonds_karp}) {
    const MinimumCut other = minimum_cut(same, algorithm);
    REQUIRE(cut->infinite == other.infinite);
    if (!cut->infinite) REQUIRE(cut->value == other.value);
  }
}

CutNetwork random_network(Random& random) {
  CutNetwork network;
  const std::int64_t nodes = 1 + below(random, 12);
  for (std::int64_t v = 0; v < nodes; ++v) (void)network.add_node();
  const std::int64_t arcs = below(random, 40);
  for (std::int64_t a = 0; a < arcs; ++a) {
    const auto from = static_cast<Node>(below(random, nodes + 2));
    const auto to = static_cast<Node>(below(random, nodes + 2));
    network.add_arc(from, to, below(random, 8) == 0 ? CutNetwork::infinite : below(random, 20));
  }
  return network;
}

}  // namespace

TEST_CASE("cut network: push-relabel, Boykov-Kolmogorov and Edmonds-Karp find the same value") {
  Random random(77);
  for (int round = 0; round < 3000; ++round) {
    CAPTURE(round);
    compare_all(random_network(random));
  }
}

TEST_CASE("cut network: the three find the same value on the networks of bounds") {
  Random random(78);
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    const BoundProblem problem =
        bound_problem_of(random_problem(random), Bytes(below(random, 20) << 20));
    std::vector<MemoryPrice> prices;
    for (std::int32_t t = 0; t < std::ssize(problem.nodes); ++t) {
      const std::int64_t price = below(random, 3) == 0 ? below(random, 1000) : 0;
      if (price > 0) prices.push_back({t, static_cast<double>(price) * 1e-12});
    }
    compare_all(priced_network(problem, sides_of(problem), prices, {}).network);
  }
}

TEST_CASE("cut network: without arcs nothing is paid, and opposite terminals cannot be tied") {
  CutNetwork network;
  std::int64_t work = 1000;
  CHECK(least_cut(network, work)->value == 0);
  const Node v = network.add_node();
  network.add_arc(CutNetwork::source, v, CutNetwork::infinite);
  network.add_arc(v, CutNetwork::sink, 5);
  CHECK(least_cut(network, work)->value == 5);
  network.add_arc(v, CutNetwork::sink, CutNetwork::infinite);
  CHECK(least_cut(network, work)->infinite);
}

TEST_CASE("cut network: a cut ends once its work is spent") {
  CutNetwork network;
  Node last = network.add_node();
  network.add_arc(CutNetwork::source, last, 1000);
  for (int i = 0; i < 1000; ++i) {
    const Node next = network.add_node();
    network.add_arc(last, next, 1000 - i);
    last = next;
  }
  network.add_arc(last, CutNetwork::sink, 3);
  std::int64_t enough = 1'000'000, little = 100;
  CHECK(least_cut(network, enough)->value == 1);
  CHECK(enough < 1'000'000);
  CHECK_FALSE(least_cut(network, little).has_value());
}

}  // namespace stowage::test
