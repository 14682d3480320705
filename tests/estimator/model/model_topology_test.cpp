#include "estimator/model/model_topology.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "estimator/model/load_model.hpp"

namespace stowage {

namespace {

std::vector<int> numbers(const std::vector<OperatorId>& ids) {
  std::vector<int> result;
  for (const OperatorId id : ids) result.push_back(id.value);
  return result;
}

std::vector<TensorUse> uses_of(const std::vector<std::pair<int, int>>& edges) {
  std::vector<TensorUse> uses;
  for (const auto& [from, to] : edges) uses.push_back({OperatorId{from}, OperatorId{to}});
  return uses;
}

// By the definition: again and again the lowest operator all of whose producers are done.
std::vector<int> naive_order(int operators, const std::vector<TensorUse>& uses) {
  std::vector<int> order;
  std::vector<bool> done(static_cast<std::size_t>(operators));
  for (bool found = true; found;) {
    found = false;
    for (int v = 0; v < operators && !found; ++v) {
      if (done[static_cast<std::size_t>(v)]) continue;
      found = std::all_of(uses.begin(), uses.end(), [&](const TensorUse& use) {
        return use.consumer.value != v || done[use.producer.index()];
      });
      if (found) {
        done[static_cast<std::size_t>(v)] = true;
        order.push_back(v);
      }
    }
  }
  return order;
}

}  // namespace

TEST_CASE("operators in order stay as they are; the others move as little as it takes") {
  CHECK(numbers(execution_order(3, {}).order) == std::vector<int>{0, 1, 2});
  CHECK(numbers(execution_order(4, uses_of({{0, 3}, {1, 2}})).order) ==
        std::vector<int>{0, 1, 2, 3});
  CHECK(numbers(execution_order(4, uses_of({{3, 1}, {2, 3}, {0, 1}})).order) ==
        std::vector<int>{0, 2, 3, 1});
}

TEST_CASE("a cycle is listed from its lowest operator, each reading the one before") {
  const ExecutionOrder order =
      execution_order(6, uses_of({{0, 1}, {1, 4}, {4, 2}, {2, 1}, {2, 3}}));
  CHECK(numbers(order.order) == std::vector<int>{0, 5});
  CHECK(numbers(order.cycle) == std::vector<int>{1, 4, 2});
  CHECK(numbers(execution_order(2, uses_of({{1, 1}})).cycle) == std::vector<int>{1});
}

TEST_CASE("the order is the definition's on random graphs, and a cycle is one") {
  std::mt19937 random(20);
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    const unsigned operators = 1 + random() % 9;
    const auto any = [&] { return OperatorId::of(random() % operators); };
    std::vector<TensorUse> uses;
    for (unsigned edge = random() % 12; edge > 0; --edge) uses.push_back({any(), any()});
    const ExecutionOrder order = execution_order(operators, uses);
    CHECK(numbers(order.order) == naive_order(static_cast<int>(operators), uses));
    CHECK(order.cycle.empty() == (order.order.size() == operators));
    for (std::size_t i = 0; i < order.cycle.size(); ++i) {
      const TensorUse use{order.cycle[i], order.cycle[(i + 1) % order.cycle.size()]};
      CHECK(std::find(uses.begin(), uses.end(), use) != uses.end());
    }
  }
}

TEST_CASE("consumers and uses of a model's tensors") {
  const auto model = load_model(std::make_shared<const SourceText>(SourceText{
      "net.yaml",
      "model: net\ninputs: {x: {shape: [batch, 4]}}\n"
      "layers: [relu: {name: a}, add: {name: b, from: [a, a]}, add: {name: c, from: [a, b]}]\n"}));
  REQUIRE(model.has_value());
  CHECK(tensor_uses(*model) == uses_of({{0, 1}, {0, 1}, {0, 2}, {1, 2}}));
  const auto readers = consumers(*model);
  REQUIRE(readers.size() == 4);
  CHECK(numbers(readers[0]) == std::vector<int>{0});
  CHECK(numbers(readers[1]) == std::vector<int>{1, 2});
  CHECK(numbers(readers[2]) == std::vector<int>{2});
  CHECK(numbers(readers[3]).empty());
}

}  // namespace stowage
