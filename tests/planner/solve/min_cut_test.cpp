#include "planner/solve/min_cut.hpp"

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <vector>

#include "planner/solve/folded_network.hpp"

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

TEST_CASE("minimum cut: parts that are alike are solved once, and each gets its sides") {
  Random random(41);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const auto copies = static_cast<std::int32_t>(2 + random_below(random, 5));
    const FlowNetwork one = random_network(random, 6, 9, 20, round % 3 == 0);
    const FlowNetwork other = random_network(random, 3, 3, 20, false);
    // The copies' nodes lie between one another's, the other network's behind the first copy's.
    FlowNetwork network;
    const auto place = [&](std::int32_t v, std::int32_t copy) {
      return v * copies + copy + (v > 0 || copy > 0 ? other.nodes() : 0);
    };
    for (std::int32_t v = 0; v < one.nodes() * copies + other.nodes(); ++v) network.add_node();
    const auto put = [&](const FlowNetwork& part, const auto& place_of) {
      for (std::int32_t v = 0; v < part.nodes(); ++v) {
        const auto at = static_cast<std::size_t>(place_of(v));
        network.from_source[at] = part.from_source[static_cast<std::size_t>(v)];
        network.to_sink[at] = part.to_sink[static_cast<std::size_t>(v)];
      }
      for (const FlowNetwork::Arc& arc : part.arcs) {
        network.add_arc(place_of(arc.from), place_of(arc.to), arc.capacity);
      }
    };
    for (std::int32_t copy = 0; copy < copies; ++copy) {
      put(one, [&](std::int32_t v) { return place(v, copy); });
    }
    put(other, [](std::int32_t v) { return v + 1; });
    const MinimumCut of_one = minimum_cut(one, FlowAlgorithm::edmonds_karp);
    const MinimumCut of_other = minimum_cut(other, FlowAlgorithm::edmonds_karp);
    for (const FlowAlgorithm algorithm : algorithms) {
      const MinimumCut cut = minimum_cut(network, algorithm);
      REQUIRE(cut.infinite == of_one.infinite);
      if (cut.infinite) continue;
      REQUIRE(cut.value == copies * of_one.value + of_other.value);
      for (std::int32_t copy = 0; copy < copies; ++copy) {
        for (std::int32_t v = 0; v < one.nodes(); ++v) {
          REQUIRE(cut.side[static_cast<std::size_t>(place(v, copy))] ==
                  of_one.side[static_cast<std::size_t>(v)]);
        }
      }
    }
  }
  // Two chains of two nodes each, alike but for the second's last capacity.
  constexpr std::int32_t source = flow::source, sink = flow::sink;
  std::vector<HalfArc> halves;
  const auto add = [&](std::int32_t tail, std::int32_t head, Capacity capacity) {
    halves.push_back({tail, head, capacity});
    halves.push_back({head, tail, 0});
  };
  for (const std::int32_t first : {2, 4}) {
    add(source, first, 5);
    add(first, first + 1, 3);
    add(first + 1, sink, 4);
  }
  const FoldedNetwork alike = fold(halves, 6);
  CHECK(alike.halves == std::vector<HalfArc>(halves.begin(), halves.begin() + 6));
  CHECK(alike.like == std::vector<std::int32_t>{0, 1, 2, 3, 2, 3});
  halves[10].capacity = 6;
  const FoldedNetwork different = fold(halves, 6);
  CHECK(different.halves == halves);
  CHECK(different.like == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5});
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
