// A step in another order: what depends on what, the runs that write an order, what is refused.
#include "estimator/rewrite/node_order.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "estimator/document/step_document.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "estimator/rewrite/micro_batches.hpp"
#include "estimator/rewrite/segments.hpp"
#include "estimator/step/node_dependences.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {
namespace {

constexpr const char* branches = R"(model: branches
inputs:
  image: {shape: [batch, 4, 8, 8]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {name: stem, channels: 4, kernel: 3, padding: 1}
  - conv2d: {name: left, from: stem, channels: 8, kernel: 3, padding: 1}
  - conv2d: {name: right, from: stem, channels: 8, kernel: 3, padding: 1}
  - relu: {name: right_relu}
  - add: {name: sum, from: [left, right_relu]}
  - flatten: {name: flat}
  - linear: {name: head, features: 3}
loss:
  cross_entropy: {from: [head, label]}
)";

StepGraph lowered(const LoweringSettings& settings) {
  return lower_step(testing::described(branches), settings).value();
}

std::vector<std::int32_t> as_given(const StepGraph& step) {
  std::vector<std::int32_t> order(step.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::int32_t node_place(const StepGraph& step, const std::string& name) {
  const auto found = std::ranges::find(step.nodes, name, &KernelNode::name);
  REQUIRE(found != step.nodes.end());
  return static_cast<std::int32_t>(found - step.nodes.begin());
}

/// A random order that keeps all dependences.
std::vector<std::int32_t> random_order(const StepGraph& step, std::mt19937& random) {
  const auto before = node_dependences(step);
  std::vector<std::vector<std::int32_t>> after(before.size());
  std::vector<std::size_t> waits(before.size());
  std::vector<std::int32_t> ready, order;
  for (std::size_t i = 0; i < before.size(); ++i) {
    waits[i] = before[i].size();
    for (const std::int32_t needed : before[i]) {
      after[static_cast<std::size_t>(needed)].push_back(static_cast<std::int32_t>(i));
    }
    if (waits[i] == 0) ready.push_back(static_cast<std::int32_t>(i));
  }
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const std::int32_t node = ready.back();
    ready.pop_back();
    order.push_back(node);
    for (const std::int32_t next : after[static_cast<std::size_t>(node)]) {
      if (--waits[static_cast<std::size_t>(next)] == 0) ready.push_back(next);
    }
  }
  return order;
}

}  // namespace

TEST_CASE("an order is written as runs, and reads back as the step that it makes") {
  std::mt19937 random(5);
  for (const int micro_batches : {1, 3}) {
    LoweringSettings settings{.optimizer = {.name = "adam"}, .micro_batches = micro_batches};
    const StepGraph step = lowered(settings);
    CHECK(runs_of_order(step, as_given(step)).size() == 1);
    for (int trial = 0; trial < 20; ++trial) {
      const std::vector<std::int32_t> order = random_order(step, random);
      REQUIRE(order.size() == step.nodes.size());
      const auto moved = with_order(step, runs_of_order(step, order));
      REQUIRE_MESSAGE(moved.has_value(), render(moved.error()));
      for (std::size_t i = 0; i < order.size(); ++i) {
        const KernelNode& was = step.nodes[static_cast<std::size_t>(order[i])];
        const KernelNode& is = moved->nodes[i];
        CHECK(is.name == was.name);
        CHECK(is.reads == was.reads);
        if (is.convolution < 0) continue;
        CHECK(moved->convolutions[static_cast<std::size_t>(is.convolution)] ==
              step.convolutions[static_cast<std::size_t>(was.convolution)]);
      }
      settings.order = moved->settings.order;
      CHECK(lowered(settings) == *moved);  // as a plan's reader lowers it again
    }
    settings.order.clear();
  }
}

TEST_CASE("an order that no step can have is refused with the node") {
  const StepGraph step = lowered({});
  const auto refusal = [&](std::vector<NodeRun> runs) {
    const auto moved = with_order(step, std::move(runs));
    return moved ? std::string("accepted") : moved.error().front().message;
  };
  const std::string first = step.nodes.front().name, last = step.nodes.back().name;
  const std::string prefix = "the step of 'branches' cannot be reordered: ";
  CHECK(refusal({{first, last}}) == "accepted");
  CHECK(refusal({{first, "nobody"}}) == prefix + "there is no node 'nobody'");
  CHECK(refusal({{last, first}}) == prefix + "'" + last + "' does not come before '" + first + "'");
  CHECK(refusal({{first, first}}) == prefix + "'" + step.nodes[1].name + "' does not run");
  CHECK(refusal({{first, last}, {first, first}}) ==
        prefix + "nodes of '" + first + "' to '" + first + "' run twice");
  std::vector<std::int32_t> order = as_given(step);
  std::swap(order[0], order[1]);
  CHECK(refusal(runs_of_order(step, order)).find(" on which it depends") != std::string::npos);
  std::vector<NodeRun> twice{{first, first}, {first, first}, {step.nodes[2].name, last}};
  CHECK(refusal(twice) == prefix + "'" + first + "' runs twice");
  const StepGraph moved = with_order(step, {{first, last}}).value();
  CHECK_FALSE(with_order(moved, {{first, last}}).has_value());
  LoweringSettings pytorch;
  pytorch.kernels = KernelSet::pytorch;
  const StepGraph other = lowered(pytorch);
  CHECK_FALSE(with_order(other, {{other.nodes.front().name, other.nodes.back().name}}).has_value());
}

TEST_CASE("nodes depend on who wrote what they read and on who read what they write") {
  const StepGraph step = lowered({});
  const auto before = node_dependences(step);
  const auto depends = [&](const std::string& node, const std::string& on) {
    return std::ranges::binary_search(before[static_cast<std::size_t>(node_place(step, node))],
                                      node_place(step, on));
  };
  CHECK(depends("left.forward", "stem.forward"));
  CHECK(depends("right.forward", "stem.forward"));
  CHECK_FALSE(depends("right.forward", "left.forward"));
  CHECK(depends("sum.forward", "left.forward"));
  CHECK(depends("update.left.weight", "left.backward.filter"));
  CHECK(depends("update.left.weight", "left.forward"));  // it overwrites what forward reads
}

TEST_CASE("all parts of an inference go through a segment before the next") {
  const LoweringSettings settings{.mode = Mode::inference};
  const StepGraph one = lowered(settings);
  const StepGraph parts = with_micro_batches(one, 3).value();
  const auto nodes = static_cast<std::int32_t>(one.nodes.size());
  for (std::int32_t border = 1; border < nodes; ++border) {
    const auto step = with_segments(parts, {border});
    REQUIRE_MESSAGE(step.has_value(), render(step.error()));
    CHECK(segment_count(*step) == 2);
    CHECK(step->nodes.size() == parts.nodes.size());
    for (std::int32_t i = 0; i < 3 * nodes; ++i) {
      const bool second = i >= 3 * border;
      const std::int32_t within = second ? i - 3 * border : i;
      const std::int32_t length = second ? nodes - border : border;
      CHECK(step->nodes[static_cast<std::size_t>(i)].micro_batch == within / length);
    }
  }
  CHECK(segment_count(parts) == 1);
  CHECK(with_segments(parts, {}).value().nodes == parts.nodes);
  CHECK_FALSE(with_segments(parts, {0}).has_value());
  CHECK_FALSE(with_segments(parts, {2, 2}).has_value());
  CHECK_FALSE(with_segments(parts, {nodes}).has_value());
  CHECK_FALSE(with_segments(one, {1}).has_value());
  CHECK_FALSE(with_segments(lowered({.micro_batches = 2}), {1}).has_value());
}

}  // namespace stowage
