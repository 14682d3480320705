#include "planner/solve/min_cut.hpp"

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <vector>

namespace stowage {
namespace {

using Random = std::mt19937_64;

std::int64_t random_below(Random& random, std::int64_t bound) {
  return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random);
}

FlowNetwork random_network(Random& random, std::int32_t nodes, int arcs, std::int64_t largest,
                           bool infinite) {
  FlowNetwork network;
  for (std::int32_t v = 0; v < nodes; ++v) {
    network.add_node();
    const auto index = static_cast<std::size_t>(v);
    if (random_below(random, 2) == 0) network.from_source[index] = random_below(random, largest);
    if (random_below(random, 2) == 0) network.to_sink[index] = random_below(random, largest);
    if (infinite && random_below(random, 12) == 0) network.from_source[index] = infinite_capacity;
    if (infinite && random_below(random, 12) == 0) network.to_sink[index] = infinite_capacity;
  }
  for (int a = 0; a < arcs; ++a) {
    const auto from = static_cast<std::int32_t>(random_below(random, nodes));
    const auto to = static_cast<std::int32_t>(random_below(random, nodes));
    const bool endless = infinite && random_below(random, 3) == 0;
    if (from != to)
      network.add_arc(from, to, endless ? infinite_capacity : random_below(random, largest));
  }
  return network;
}

// -1 where the cut pays an infinite arc.
Capacity cost(const FlowNetwork& network, const std::vector<bool>& source_side) {
  Capacity sum = 0;
  bool infinite = false;
  const auto pay = [&](Capacity capacity) {
    if (capacity == infinite_capacity)
      infinite = true;
    else
      sum += capacity;
  };
  for (std::size_t v = 0; v < source_side.size(); ++v) {
    pay(source_side[v] ? network.to_sink[v] : network.from_source[v]);
  }
  for (const FlowNetwork::Arc& arc : network.arcs) {
    if (source_side[static_cast<std::size_t>(arc.from)] &&
        !source_side[static_cast<std::size_t>(arc.to)]) {
      pay(arc.capacity);
    }
  }
  return infinite ? -1 : sum;
}

std::vector<bool> source_side(const MinimumCut& cut, bool greatest) {
  std::vector<bool> side;
  for (const CutSide s : cut.side) {
    side.push_back(s == CutSide::source || (greatest && s == CutSide::either));
  }
  return side;
}

constexpr std::array algorithms{FlowAlgorithm::guarded, FlowAlgorithm::boykov_kolmogorov,
                                FlowAlgorithm::push_relabel, FlowAlgorithm::edmonds_karp};

}  // namespace

TEST_CASE("minimum cut: by hand") {
  FlowNetwork network;
  const std::int32_t a = network.add_node();
  const std::int32_t b = network.add_node();
  network.from_source = {5, 0};
  network.to_sink = {0, 4};
  network.add_arc(a, b, 3);
  for (const FlowAlgorithm algorithm : algorithms) {
    const MinimumCut cut = minimum_cut(network, algorithm);
    CHECK_FALSE(cut.infinite);
    CHECK(cut.value == 3);
    CHECK(cut.side == std::vector{CutSide::source, CutSide::sink});
  }
}

TEST_CASE("minimum cut: a tie leaves the node on either side") {
  FlowNetwork network;
  network.add_node();
  network.from_source = {7};
  network.to_sink = {7};
  const MinimumCut cut = minimum_cut(network);
  CHECK(cut.value == 7);
  CHECK(cut.side == std::vector{CutSide::either});
}

TEST_CASE("minimum cut: contradictory pins are infinite") {
  FlowNetwork network;
  for (int i = 0; i < 3; ++i) network.add_node();
  network.from_source[0] = infinite_capacity;
  network.to_sink[2] = infinite_capacity;
  network.add_arc(0, 1, infinite_capacity);
  CHECK_FALSE(minimum_cut(network).infinite);
  network.add_arc(1, 2, infinite_capacity);
  for (const FlowAlgorithm algorithm : algorithms) CHECK(minimum_cut(network, algorithm).infinite);
}

TEST_CASE("minimum cut: all algorithms agree with every assignment of small networks") {
  Random random(20240731);
  INFO("seed 20240731");
  int infinite = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto nodes = static_cast<std::int32_t>(1 + random_below(random, 9));
    const FlowNetwork network = random_network(random, nodes, 20, 12, round % 2 == 0);
    Capacity least = -1;
    for (unsigned mask = 0; mask < (1U << nodes); ++mask) {
      std::vector<bool> side;
      for (std::int32_t v = 0; v < nodes; ++v) side.push_back(((mask >> v) & 1U) != 0);
      const Capacity c = cost(network, side);
      if (c >= 0 && (least < 0 || c < least)) least = c;
    }
    std::vector<CutSide> sides;
    for (const FlowAlgorithm algorithm : algorithms) {
      const MinimumCut cut = minimum_cut(network, algorithm);
      REQUIRE(cut.infinite == (least < 0));
      if (cut.infinite) continue;
      REQUIRE(cut.value == least);
      REQUIRE(cost(network, source_side(cut, false)) == least);
      REQUIRE(cost(network, source_side(cut, true)) == least);
      if (sides.empty()) sides = cut.side;
      REQUIRE(cut.side == sides);
    }
    infinite += least < 0 ? 1 : 0;
  }
  CHECK(infinite > 50);
  CHECK(infinite < 1500);
}

TEST_CASE("minimum cut: algorithms agree on larger networks") {
  Random random(7);
  INFO("seed 7");
  for (int round = 0; round < 60; ++round) {
    const FlowNetwork network = random_network(random, 200, 1200, std::int64_t{1} << 45, false);
    const MinimumCut guarded = minimum_cut(network);
    REQUIRE(cost(network, source_side(guarded, false)) == guarded.value);
    for (const FlowAlgorithm algorithm : algorithms) {
      const MinimumCut cut = minimum_cut(network, algorithm);
      REQUIRE(cut.value == guarded.value);
      REQUIRE(cut.side == guarded.side);
    }
  }
}

}  // namespace stowage
