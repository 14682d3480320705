// A step whose saved tensors lie on the host between forward and backward.
#include "estimator/rewrite/saved_on_host.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "estimator/memory/step_memory.hpp"
#include "estimator/rewrite/micro_batches.hpp"
#include "estimator/step/offloaded_bytes.hpp"
#include "estimator/step/saved_storages.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

constexpr const char* network = R"(model: net
inputs: {x: {shape: [batch, 4, 8, 8]}, t: {shape: [batch], dtype: int64}}
layers:
  - conv2d: {name: first, from: x, channels: 64, kernel: 3, padding: 1}
  - relu: {name: act}
  - conv2d: {name: second, channels: 4, kernel: 3, padding: 1}
  - flatten: {name: flat}
  - linear: {name: head, features: 10}
loss: {cross_entropy: {from: [head, t]}}
)";

StepGraph step_of(KernelSet kernels = KernelSet::pytorch) {
  return *testing::lowered(testing::described(network), {.kernels = kernels});
}

StorageId storage_named(const StepGraph& step, std::string_view name) {
  const auto found = std::ranges::find(step.storages, name, &Storage::name);
  REQUIRE(found != step.storages.end());
  return StorageId::of(static_cast<std::size_t>(found - step.storages.begin()));
}

NodeId node_named(const StepGraph& step, std::string_view name) {
  const auto found = std::ranges::find(step.nodes, name, &KernelNode::name);
  CAPTURE(name);
  REQUIRE(found != step.nodes.end());
  return NodeId::of(static_cast<std::size_t>(found - step.nodes.begin()));
}

/// The activation's stay: from the layer that reads it last to that layer's backward.
SavedStay stay_of_act(const StepGraph& step) {
  const StorageId act = storage_named(step, "act");
  NodeId last, first;
  for (std::size_t n = 0; n < step.nodes.size(); ++n) {
    const KernelNode& node = step.nodes[n];
    const auto touches = [&](const std::vector<TensorView>& views) {
      return std::ranges::find(views, act, &TensorView::storage) != views.end();
    };
    if (!touches(node.reads) && !touches(node.writes)) continue;
    if (node.phase == Phase::forward) last = NodeId::of(n);
    if (node.phase == Phase::backward && !first.valid()) first = NodeId::of(n);
  }
  return {act, last, last, first};
}

bool reads(const KernelNode& node, StorageId storage) {
  return std::ranges::find(node.reads, storage, &TensorView::storage) != node.reads.end();
}

StepGraph moved(const StepGraph& step, const std::vector<SavedStay>& stays) {
  auto result = with_saved_on_host(step, stays);
  if (!result) FAIL(render(result.error()));
  return *std::move(result);
}

std::string refusal(const StepGraph& step, const std::vector<SavedStay>& stays) {
  const auto result = with_saved_on_host(step, stays);
  REQUIRE_FALSE(result.has_value());
  return result.error().front().message;
}

Bytes held_at(const StepGraph& step, NodeId node) {
  const auto sized = size_storages(std::make_shared<const StepGraph>(step), 8);
  REQUIRE(sized.has_value());
  return live_bytes(*sized, {}, storage_touches(step))[node.index()];
}

}  // namespace

TEST_CASE("backward reads the fetched storage, forward the original") {
  const StepGraph step = step_of();
  const SavedStay stay = stay_of_act(step);
  const StepGraph result = moved(step, {stay});
  REQUIRE(result.nodes.size() == step.nodes.size() + 2);
  const StorageId act = storage_named(result, "act"),
                  fetched = storage_named(result, "act.fetched");
  CHECK(result.storage(fetched).bytes == result.storage(act).bytes);
  for (const KernelNode& node : result.nodes) {
    CAPTURE(node.name);
    if (node.phase == Phase::backward) CHECK_FALSE(reads(node, act));
    if (node.phase == Phase::forward) CHECK_FALSE(reads(node, fetched));
  }
  const KernelNode& there = result.node(node_named(result, "act.to_host"));
  const KernelNode& back = result.node(node_named(result, "act.from_host"));
  CHECK(kernel_name(there) == offload_kernel);
  CHECK(kernel_name(back) == fetch_kernel);
  CHECK(there.writes.empty());
  CHECK(back.reads.empty());
  CHECK(offloaded_bytes(result) == step.storage(stay.storage).bytes);
}

TEST_CASE("the GPU is free of it from the release to the fetch") {
  const StepGraph step = step_of();
  const SavedStay stay = stay_of_act(step);
  const StepGraph result = moved(step, {stay});
  const Bytes act = size_storages(std::make_shared<const StepGraph>(step), 8)->bytes(stay.storage);
  const NodeId loss = [&] {
    const auto found = std::ranges::find(step.nodes, Phase::loss, &KernelNode::phase);
    return NodeId::of(static_cast<std::size_t>(found - step.nodes.begin()));
  }();
  const NodeId there = node_named(result, step.node(loss).name);
  CHECK(held_at(result, there) == held_at(step, loss) - act);
}

TEST_CASE("a step of several micro-batches moves each one's") {
  const StepGraph step = step_of();
  const auto three = with_micro_batches(moved(step, {stay_of_act(step)}), 3);
  REQUIRE(three.has_value());
  CHECK(std::ranges::count_if(three->nodes, [](const KernelNode& node) {
          return kernel_name(node) == fetch_kernel;
        }) == 3);
}

TEST_CASE("no stays change nothing") {
  const StepGraph step = step_of();
  CHECK(moved(step, {}) == step);
}

TEST_CASE("a stay that the step contradicts is refused") {
  const StepGraph step = step_of();
  const SavedStay stay = stay_of_act(step);
  CHECK(refusal(step, {stay, stay}) == "'act' has two stays on the host");
  SavedStay turned = stay;
  turned.fetched_before = turned.released_after;
  CHECK(refusal(step, {turned}) == "the stay of 'act' on the host ends before it begins");
  SavedStay early = stay;
  early.copied_after = early.released_after = node_named(step, "act.forward");
  CHECK(refusal(step, {early}) == "'second.forward' touches 'act', which is on the host then");
  SavedStay beyond = stay;
  beyond.fetched_before = NodeId::of(step.nodes.size());
  CHECK(refusal(step, {beyond}) == "the stay of 'act' on the host ends before it begins");
}

TEST_CASE("autograd alone keeps what no variable of the script has") {
  const StepGraph step = step_of();
  const std::vector<bool> kept = kept_by_autograd(step);
  const auto is_kept = [&](std::string_view name) {
    return kept[storage_named(step, name).index()];
  };
  CHECK(is_kept("act"));
  CHECK_FALSE(is_kept("x"));
  CHECK_FALSE(is_kept("first.weight"));
  CHECK_FALSE(is_kept("head"));  // `output` is a variable
}

}  // namespace stowage
