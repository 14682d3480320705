// Orders of nodes: the lowest peak and the worst, against all orders of small problems.
#include "estimator/order/lower_peak.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "estimator/order/any_order.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "estimator/rewrite/node_order.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {
namespace {

std::int64_t below(std::mt19937& random, std::uint32_t bound) {
  return static_cast<std::int64_t>(random() % bound);
}

OrderProblem random_order_problem(std::mt19937& random, std::size_t nodes) {
  OrderProblem problem;
  problem.always = Bytes(below(random, 10));
  problem.before.resize(nodes);
  for (std::size_t i = 0; i < nodes; ++i) {
    problem.scratch.emplace_back(below(random, 4) == 0 ? below(random, 20) : 0);
    // What it makes, and who reads that: readers come behind it.
    OrderProblem::Item item{Bytes(1 + below(random, 30)), {static_cast<std::int32_t>(i)}};
    for (std::size_t reader = i + 1; reader < nodes; ++reader) {
      if (random() % 3 != 0) continue;
      item.touches.push_back(static_cast<std::int32_t>(reader));
      problem.before[reader].push_back(static_cast<std::int32_t>(i));
    }
    problem.items.push_back(std::move(item));
  }
  return problem;
}

bool keeps_dependences(const OrderProblem& problem, const std::vector<std::int32_t>& order) {
  std::vector<bool> done(order.size(), false);
  for (const std::int32_t node : order) {
    const auto& needed = problem.before[static_cast<std::size_t>(node)];
    if (!std::ranges::all_of(needed,
                             [&](std::int32_t n) { return done[static_cast<std::size_t>(n)]; })) {
      return false;
    }
    done[static_cast<std::size_t>(node)] = true;
  }
  return std::ranges::count(done, true) == std::ssize(order);
}

struct Extremes {
  Bytes least, most;
};
Extremes over_all_orders(const OrderProblem& problem) {
  std::vector<std::int32_t> order(problem.before.size());
  std::iota(order.begin(), order.end(), 0);
  const Bytes given = peak_of_order(problem, order);
  Extremes extremes{given, given};
  do {
    if (!keeps_dependences(problem, order)) continue;
    const Bytes peak = peak_of_order(problem, order);
    extremes.least = std::min(extremes.least, peak);
    extremes.most = std::max(extremes.most, peak);
  } while (std::ranges::next_permutation(order).found);
  return extremes;
}

SizedStep sized(const char* text, const LoweringSettings& settings, std::int64_t batch) {
  const auto workspaces = rule_workspace_source(8.6);
  return size_step(std::make_shared<const StepGraph>(
                       lower_step(testing::described(text), settings).value()),
                   batch, *workspaces)
      .value();
}

// Two branches whose insides are large and whose results are small: one after the other is better.
constexpr const char* two_branches = R"(model: two-branches
inputs:
  x: {shape: [batch, 8]}
layers:
  - linear: {name: wide_a, from: x, features: 4096}
  - linear: {name: wide_b, from: x, features: 4096}
  - linear: {name: a, from: wide_a, features: 8}
  - linear: {name: b, from: wide_b, features: 8}
  - add: {name: sum, from: [a, b]}
)";

}  // namespace

TEST_CASE("small problems are ordered exactly, and none exceeds the bound on any order") {
  std::mt19937 random(21);
  int lowered = 0, reached = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const OrderProblem problem = random_order_problem(random, 3 + random() % 5);
    const Extremes extremes = over_all_orders(problem);
    std::vector<std::int32_t> given(problem.before.size());
    std::iota(given.begin(), given.end(), 0);
    const auto order = lower_peak_order(problem);
    CHECK(keeps_dependences(problem, order));
    CHECK(peak_of_order(problem, order) == extremes.least);
    lowered += extremes.least < peak_of_order(problem, given) ? 1 : 0;
    const auto bound = any_order_peak(problem);
    REQUIRE(bound.has_value());
    CHECK(*bound >= extremes.most);
    reached += *bound == extremes.most ? 1 : 0;
  }
  CHECK(lowered > 50);
  CHECK(reached > 10);  // in 23 of 200
}

TEST_CASE("larger problems are never ordered worse, and as well as small beams of windows allow") {
  std::mt19937 random(4);
  for (int trial = 0; trial < 10; ++trial) {
    const OrderProblem problem = random_order_problem(random, 100);
    std::vector<std::int32_t> given(100);
    std::iota(given.begin(), given.end(), 0);
    const auto order = lower_peak_order(problem, {.most_sets = 50, .most_rounds = 20});
    CHECK(keeps_dependences(problem, order));
    CHECK(peak_of_order(problem, order) <= peak_of_order(problem, given));
    CHECK(order == lower_peak_order(problem, {.most_sets = 50, .most_rounds = 20}));
    const auto stopped = lower_peak_order(problem, {.stop = [] { return true; }});
    CHECK(peak_of_order(problem, stopped) <= peak_of_order(problem, given));
  }
}

TEST_CASE("branches run one after the other where that takes less") {
  const SizedStep step = sized(two_branches, {.mode = Mode::inference}, 1024);
  const OrderProblem problem = order_problem(step);
  std::vector<std::int32_t> given(step.graph->nodes.size());
  std::iota(given.begin(), given.end(), 0);
  const Bytes whole = peak_of_order(problem, given);
  const auto order = lower_peak_order(problem);
  // 16 MiB each: both were live at once.
  CHECK(peak_of_order(problem, order) < whole - 15_MiB);
  const auto moved = with_order(*step.graph, runs_of_order(*step.graph, order));
  REQUIRE_MESSAGE(moved.has_value(), render(moved.error()));
  CHECK(*any_order_peak(problem) >= whole);
  const SizedStep again = sized(two_branches, moved->settings, 1024);
  CHECK(peak_of_order(order_problem(again), given) == peak_of_order(problem, order));
  CHECK(any_order_peak(order_problem(again)) == any_order_peak(problem));
}

TEST_CASE("a chain has one order") {
  const SizedStep step = sized(
      "model: chain\ninputs:\n  x: {shape: [batch, 8]}\nlayers:\n  - linear: {features: 64}\n"
      "  - gelu\n  - linear: {features: 4}\n",
      {.mode = Mode::inference}, 16);
  const OrderProblem problem = order_problem(step);
  const auto order = lower_peak_order(problem);
  CHECK(std::ranges::is_sorted(order));
  CHECK(any_order_peak(problem) == peak_of_order(problem, order));
}

}  // namespace stowage
