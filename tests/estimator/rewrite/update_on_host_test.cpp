// A step whose optimizer works on the host.
#include "estimator/rewrite/update_on_host.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "estimator/document/check_step_graph.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/rewrite/micro_batches.hpp"
#include "estimator/step/offloaded_bytes.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

constexpr const char* small_updates = R"(model: net
inputs: {x: {shape: [batch, 16]}, t: {shape: [batch], dtype: int64}}
layers:
  - linear: {name: a, from: x, features: 32}
  - relu: {name: act}
  - linear: {name: b, features: 32}
  - linear: {name: head, features: 10}
loss: {cross_entropy: {from: [head, t]}}
)";

StepGraph updating_step(LoweringSettings settings = {}) {
  settings.kernels = KernelSet::pytorch;
  settings.optimizer.name = "adamw";
  return *testing::lowered(testing::described(small_updates), settings);
}

StepGraph moved(const StepGraph& step) {
  auto result = with_update_on_host(step);
  if (!result) FAIL(render(result.error()));
  return *std::move(result);
}

std::string refusal(const StepGraph& step) {
  const auto result = with_update_on_host(step);
  REQUIRE_FALSE(result.has_value());
  return result.error().front().message;
}

std::vector<Parameter> parameters_of() { return testing::described(small_updates).parameters; }

Bytes bytes_of(const StepGraph& step, StorageClass storage_class) {
  const auto sized = size_storages(std::make_shared<const StepGraph>(step), 4);
  REQUIRE(sized.has_value());
  return class_bytes(*sized, storage_class);
}

std::int64_t count_of(const StepGraph& step, std::string_view kernel) {
  return std::ranges::count_if(step.nodes,
                               [&](const KernelNode& node) { return kernel_name(node) == kernel; });
}

}  // namespace

TEST_CASE("the GPU has neither state nor update, and each gradient goes to the host") {
  const StepGraph step = updating_step();
  const StepGraph result = moved(step);
  CHECK(bytes_of(step, StorageClass::optimizer_state) ==
        2 * bytes_of(step, StorageClass::parameter));
  CHECK(bytes_of(result, StorageClass::optimizer_state) == Bytes());
  CHECK(bytes_of(result, StorageClass::gradient) == bytes_of(step, StorageClass::gradient));
  CHECK(count_of(result, offload_kernel) == 6);
  CHECK(count_of(result, fetch_kernel) == 6);
  for (const KernelNode& node : result.nodes) {
    CAPTURE(node.name);
    CHECK((node.phase != Phase::update || kernel_name(node) == fetch_kernel));
  }
  const Bytes parameters = bytes_of(step, StorageClass::parameter);
  CHECK(result.host_state_bytes ==
        step.host_state_bytes + bytes_of(step, StorageClass::optimizer_state).count());
  REQUIRE(result.host_buffers.size() == 2);
  for (const HostBuffer& buffer : result.host_buffers) {
    CHECK(buffer.bytes == parameters.count());
    CHECK(buffer.pinned);
  }
  const auto problem = step_graph_problem(result, parameters_of(), std::nullopt);
  CHECK(problem.value_or(Diagnostic{}).message == "");
}

TEST_CASE("so many gradients are under way at a time, and no more") {
  const StepGraph result = moved(updating_step());
  std::vector<const KernelNode*> copies;
  for (const KernelNode& node : result.nodes) {
    if (kernel_name(node) == offload_kernel) copies.push_back(&node);
  }
  CHECK(copies[0]->holds.empty());
  CHECK(copies[1]->holds.size() == 1);
  for (std::size_t i = 2; i < copies.size(); ++i) {
    REQUIRE(copies[i]->holds.size() == gradients_in_flight);
    CHECK(copies[i]->holds.back() == copies[i - 1]->reads.front().storage);
  }
}

TEST_CASE("a step whose update cannot leave the GPU is refused") {
  StepGraph step = updating_step({.mode = Mode::inference});
  CHECK(refusal(step) == "an inference has no updates");
  step = updating_step({.micro_batches = 2});
  CHECK(refusal(step) == "several micro-batches add their gradients up on the GPU");
  step = updating_step();
  step.settings.early_updates = true;
  CHECK(refusal(step) == "its updates are early already");
  step = updating_step();
  const auto update = std::ranges::find(step.nodes, Phase::update, &KernelNode::phase);
  update->reads.push_back(step.losses.front());
  CHECK(refusal(step) == "the update's '" + update->name + "' reads '" +
                             step.storage(step.losses.front().storage).name + "'");
  step = updating_step();
  KernelNode clips = *std::ranges::find(step.nodes, Phase::update, &KernelNode::phase);
  clips.name = "clip";
  clips.phase = Phase::backward;
  clips.reads = clips.writes = {step.gradients[0], step.gradients[1]};
  step.nodes.insert(std::ranges::find(step.nodes, Phase::update, &KernelNode::phase), clips);
  CHECK(refusal(step) == "'clip' reads the gradient 'a.weight.grad'");
  step = updating_step();
  step.storages[step.gradients.front().storage.index()].persistence = Persistence::persistent;
  CHECK(refusal(step) ==
        "'a.weight.grad' stays from step to step: the optimizer is moved to the "
        "host where zero_grad sets gradients to None");
}

}  // namespace stowage
