// A step of one micro-batch repeated: what is there again, what is there once, and what a later
// micro-batch does otherwise than the first.
#include "estimator/rewrite/micro_batches.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "estimator/rewrite/lower_step.hpp"
#include "estimator/step/lower.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

constexpr std::string_view tied = R"(
model: tied
inputs: {x: {shape: [batch, 4]}, t: {shape: [batch], dtype: int64}}
layers:
  - linear: {name: fc, from: x, features: 4, bias: false}
  - dropout: {name: drop}
  - linear: {name: again, features: 4, bias: false, tie: {weight: fc.weight}}
loss: {cross_entropy: {from: [again, t]}}
)";

StepGraph one_micro_batch(const ModelGraph& model, LoweringSettings settings) {
  auto step = lower(model, settings);
  if (!step) FAIL(render(step.error()));
  return *std::move(step);
}

StepGraph repeated(const ModelGraph& model, const LoweringSettings& settings, int count) {
  auto step = with_micro_batches(one_micro_batch(model, settings), count);
  if (!step) FAIL(render(step.error()));
  return *std::move(step);
}

std::string calls(const StepGraph& step) {
  std::string lines;
  for (const KernelNode& node : step.nodes) {
    std::vector<std::string_view> reads, writes;
    for (const TensorView& view : node.reads) reads.push_back(step.storage(view.storage).name);
    for (const TensorView& view : node.writes) writes.push_back(step.storage(view.storage).name);
    lines +=
        fmt::format("{}: {} -> {}\n", node.name, fmt::join(reads, ", "), fmt::join(writes, ", "));
  }
  return lines;
}

std::string message(const Result<StepGraph>& result) {
  return result ? "no error" : result.error().front().message;
}

const KernelNode& call(const StepGraph& step, const std::string& name) {
  const auto found = std::find_if(step.nodes.begin(), step.nodes.end(),
                                  [&](const KernelNode& node) { return node.name == name; });
  if (found == step.nodes.end()) FAIL(name);
  return *found;
}

const Storage& storage(const StepGraph& step, const std::string& name) {
  const auto found = std::find_if(step.storages.begin(), step.storages.end(),
                                  [&](const Storage& other) { return other.name == name; });
  if (found == step.storages.end()) FAIL(name);
  return *found;
}

const ScriptHold& script_hold(const StepGraph& step, const std::string& name) {
  const auto index = static_cast<std::size_t>(&storage(step, name) - step.storages.data());
  return step.script_holds.of(StorageId::of(index));
}

}  // namespace

TEST_CASE("a later micro-batch adds its gradients to the first one's, one use after another") {
  const auto step =
      repeated(testing::described(std::string(tied)), {.optimizer = {.name = "sgd"}}, 2);
  CHECK(calls(step) == R"(fc.forward@0: x@0, fc.weight -> fc@0
drop.forward@0: fc@0 -> drop@0, drop.mask@0
again.forward@0: drop@0, fc.weight -> again@0
loss.forward@0: again@0, t@0 -> loss@0, loss.logsumexp@0
loss.backward@0: again@0, t@0, loss.logsumexp@0 -> loss.grad_input0@0
again.backward.filter@0: drop@0, loss.grad_input0@0 -> fc.weight.grad@0
again.backward.data@0: loss.grad_input0@0, fc.weight -> again.grad_input@0
drop.backward@0: again.grad_input@0, drop.mask@0 -> drop.grad_input@0
fc.backward.filter@0: x@0, drop.grad_input@0 -> fc.weight.grad@0~2
fc.sum_gradients@0: fc.weight.grad@0, fc.weight.grad@0~2 -> fc.weight.grad@0
fc.forward@1: x@1, fc.weight -> fc@1
drop.forward@1: fc@1 -> drop@1, drop.mask@1
again.forward@1: drop@1, fc.weight -> again@1
loss.forward@1: again@1, t@1 -> loss@1, loss.logsumexp@1
loss.backward@1: again@1, t@1, loss.logsumexp@1 -> loss.grad_input0@1
again.backward.filter@1: drop@1, loss.grad_input0@1 -> fc.weight.grad@1
again.backward.data@1: loss.grad_input0@1, fc.weight -> again.grad_input@1
again.sum_gradients@1: fc.weight.grad@0, fc.weight.grad@1 -> fc.weight.grad@0
drop.backward@1: again.grad_input@1, drop.mask@1 -> drop.grad_input@1
fc.backward.filter@1: x@1, drop.grad_input@1 -> fc.weight.grad@1~2
fc.sum_gradients@1: fc.weight.grad@0, fc.weight.grad@1~2 -> fc.weight.grad@0
update.fc.weight: fc.weight, fc.weight.grad@0 -> fc.weight
)");
}

TEST_CASE("masks of each micro-batch are their own, and each takes its share of the loss") {
  const auto model = testing::described(std::string(tied));
  const auto one = one_micro_batch(model, {.optimizer = {.name = "sgd"}});
  const auto step = repeated(model, {.optimizer = {.name = "sgd"}}, 4);
  const auto seed = [&](const std::string& name) {
    return call(step, name).attributes.integer("seed");
  };
  CHECK(seed("drop.forward@0") == call(one, "drop.forward").attributes.integer("seed"));
  CHECK(seed("drop.forward@0") != seed("drop.forward@1"));
  CHECK(seed("drop.forward@1") != seed("drop.forward@3"));
  CHECK(seed("drop.forward@3") == seed("drop.backward@3"));
  for (int i = 0; i < 4; ++i) {
    CHECK(call(step, fmt::format("loss.backward@{}", i)).attributes.real("scale") == 0.25);
  }
}

TEST_CASE("a script's variables keep a value until the next micro-batch's takes its place") {
  const auto step = repeated(testing::described(std::string(tied)),
                             {.kernels = KernelSet::pytorch, .optimizer = {.name = "sgd"}}, 2);
  CHECK_FALSE(script_hold(step, "x@0").held_to_end);
  CHECK(script_hold(step, "x@1").held_to_end);
  CHECK_FALSE(script_hold(step, "x@0").loaded_before.valid());
  const NodeId second = script_hold(step, "x@1").loaded_before;
  REQUIRE(second.valid());
  CHECK(step.node(second).micro_batch == 1);
  CHECK(step.node(NodeId::of(second.index() - 1)).micro_batch == 0);
  CHECK_FALSE(script_hold(step, "again@0").replaced_after.valid());
  CHECK(step.node(script_hold(step, "again@1").replaced_after).micro_batch == 0);
}

TEST_CASE("a gradient that zero_grad keeps is there once, and every micro-batch adds to it") {
  LoweringSettings settings{.kernels = KernelSet::pytorch, .optimizer = {.name = "sgd"}};
  settings.step.zero_grad = ZeroGrad::to_zero;
  const auto step = repeated(testing::described(std::string(tied)), settings, 3);
  const auto grad = std::count_if(step.storages.begin(), step.storages.end(), [](const Storage& s) {
    return s.storage_class == StorageClass::gradient && s.persistence == Persistence::persistent;
  });
  CHECK(grad == 1);
  const Storage& kept = storage(step, "fc.weight.grad");
  int added = 0;
  for (const KernelNode& node : step.nodes) {
    added += node.kernel == Kernel::accumulate && &step.storage(node.writes[0].storage) == &kept;
  }
  CHECK(added == 3);
  CHECK(step.node(script_hold(step, "fc.weight.grad").first_made_by).micro_batch == 0);
}

TEST_CASE("later micro-batches add to the gradients in place, whatever made them") {
  const ModelGraph model = testing::shipped("mlp");
  for (const KernelSet kernels : {KernelSet::pytorch, KernelSet::stowage}) {
    const auto graph = repeated(model, {.kernels = kernels}, 3);
    std::size_t in_place = 0, elsewhere = 0;
    for (const KernelNode& node : graph.nodes) {
      in_place += node.kernel == Kernel::accumulate;
      elsewhere += node.kernel == Kernel::add;
    }
    CHECK(in_place == 2 * model.parameters.size());
    CHECK(elsewhere == 0);
  }
}

TEST_CASE("one micro-batch is the step itself, and the nodes of more are known beforehand") {
  const auto one =
      one_micro_batch(testing::described(std::string(tied)), {.optimizer = {.name = "sgd"}});
  CHECK(calls(with_micro_batches(one, 1).value()) == calls(one));
  for (const int count : {1, 2, 5}) {
    CHECK(nodes_with_micro_batches(one, count) == with_micro_batches(one, count)->nodes.size());
  }
}

TEST_CASE("what cannot be repeated is refused") {
  const auto one =
      one_micro_batch(testing::described(std::string(tied)), {.optimizer = {.name = "sgd"}});
  CHECK(message(with_micro_batches(one, 0)) == "a step has at least one micro-batch");
  CHECK(message(with_micro_batches(with_micro_batches(one, 2).value(), 2)) ==
        "the step of 'tied' has 2 micro-batches already");
  CHECK(message(with_micro_batches(one, 999'999'937)) ==
        "999999937 micro-batches of 'tied' make a step of more than 20000000 kernel calls");
  StepGraph unknown = one;
  unknown.micro_batch = {};
  CHECK(
      message(with_micro_batches(unknown, 2)) ==
      "the step of 'tied' cannot be repeated: it does not say which of its nodes and storages are "
      "one micro-batch's");
  unknown = one;
  unknown.micro_batch.arrivals.front().after = NodeId::of(one.nodes.size());
  CHECK(message(with_micro_batches(unknown, 2)) ==
        "the step of 'tied' cannot be repeated: a gradient of a parameter does not arrive in it");
}

TEST_CASE("nodes of the first micro-batch alone are named once, and are not all") {
  const auto one =
      one_micro_batch(testing::described(std::string(tied)), {.optimizer = {.name = "sgd"}});
  StepGraph twice = one;
  twice.micro_batch.first_only.assign(2, one.micro_batch.first_node);
  CHECK(message(with_micro_batches(twice, 2)) ==
        "the step of 'tied' cannot be repeated: the nodes that only the first micro-batch runs are "
        "not nodes of it in their order");
  StepGraph all = one;
  all.micro_batch.first_only.clear();
  for (NodeId id = one.micro_batch.first_node; id < one.micro_batch.end_node; ++id.value) {
    all.micro_batch.first_only.push_back(id);
  }
  CHECK(message(with_micro_batches(all, 2)) ==
        "the step of 'tied' cannot be repeated: the first micro-batch alone runs all of its nodes");
  all.micro_batch.first_only.resize(2 * one.nodes.size());
  CHECK(nodes_with_micro_batches(all, 3) >= one.nodes.size());
}

TEST_CASE("attributes that a step's file gives another type are left alone") {
  auto odd = one_micro_batch(testing::described(std::string(tied)), {.optimizer = {.name = "sgd"}});
  int changed = 0;
  for (KernelNode& node : odd.nodes) {
    if (node.attributes.has("seed")) {
      node.attributes.set("seed", std::numeric_limits<std::int64_t>::max());
      ++changed;
    }
    if (node.attributes.has("scale")) {
      node.attributes.set("scale", std::string("half"));
      ++changed;
    }
  }
  CHECK(changed >= 2);
  const auto repeated = with_micro_batches(odd, 2);
  REQUIRE(repeated.has_value());
  int seeds = 0;
  for (const KernelNode& node : repeated->nodes) {
    if (node.attributes.has("scale")) CHECK(node.attributes.text("scale") == "half");
    if (node.micro_batch == 0 || !node.attributes.has("seed")) continue;
    CHECK(node.attributes.integer("seed") < 0);  // it goes round
    ++seeds;
  }
  CHECK(seeds > 0);
}

}  // namespace stowage
