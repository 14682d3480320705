// A step whose optimizer works on the host.
#include "estimator/rewrite/update_on_host.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

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

StepGraph changed(const StepGraph& step, const UpdateChoice& choice) {
  auto result = with_updates(step, choice);
  if (!result) FAIL(render(result.error()));
  const auto problem =
      step_graph_problem(*result, testing::described(small_updates).parameters, std::nullopt);
  CHECK(problem.value_or(Diagnostic{}).message == "");
  return *std::move(result);
}

/// A step as recorded ones have it: foreach kernels that make lists of results for others.
StepGraph foreach_step() {
  StepGraph step = updating_step();
  KernelNode update = *std::ranges::find(step.nodes, Phase::update, &KernelNode::phase);
  KernelNode roots{.name = "sqrt", .kernel = update.kernel, .phase = Phase::update};
  for (std::size_t p = 0; p < step.gradients.size(); ++p) {
    const TensorView& state = update.reads[4 * p + 3];
    roots.reads.push_back(state);
    TensorView made = state;
    made.storage = StorageId::of(step.storages.size());
    step.storages.push_back(
        {.name = "root:" + std::to_string(p), .bytes = step.storage(state.storage).bytes});
    roots.writes.push_back(made);
    update.reads.push_back(made);
  }
  std::erase_if(step.nodes, [](const KernelNode& node) { return node.phase == Phase::update; });
  step.nodes.push_back(std::move(roots));
  step.nodes.push_back(std::move(update));
  return step;
}

std::string choice_refusal(const StepGraph& step, const UpdateChoice& choice) {
  const auto result = with_updates(step, choice);
  REQUIRE_FALSE(result.has_value());
  return result.error().front().message;
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

TEST_CASE("some parameters are updated on the host, and the others where they were") {
  const StepGraph step = foreach_step();
  const std::vector<ParameterId> chosen{ParameterId::of(0), ParameterId::of(4)};
  const StepGraph result =
      changed(step, {.on_host = UpdateChoice::OnHost::some, .parameters = chosen});
  CHECK(count_of(result, offload_kernel) == 2);
  CHECK(count_of(result, fetch_kernel) == 2);
  const auto sized = [&](std::size_t p) { return step.storage(step.gradients[p].storage).bytes; };
  const Affine moved = sized(0) + sized(4);
  REQUIRE(result.host_buffers.size() == 2);
  CHECK(result.host_buffers.front().bytes == moved.constant);
  CHECK(result.host_state_bytes == step.host_state_bytes + 2 * moved.constant);
  CHECK(bytes_of(result, StorageClass::optimizer_state) ==
        bytes_of(step, StorageClass::optimizer_state) - Bytes(2 * moved.constant));
  for (const KernelNode& node : result.nodes) {
    if (node.phase != Phase::update || kernel_name(node) == fetch_kernel) continue;
    CAPTURE(node.name);
    CHECK(node.writes.size() == (node.name == "sqrt" ? 4 : 12));
    for (const TensorView& view : node.reads) {
      const std::string& name = result.storage(view.storage).name;
      CHECK_FALSE(name.starts_with("a.weight"));
      CHECK_FALSE(name.starts_with("head.weight"));
      CHECK(name != "root:0");
      CHECK(name != "root:4");
    }
  }
  CHECK_FALSE(result.settings.early_updates);
}

TEST_CASE("an early update is a parameter's own part, right behind its gradient") {
  const StepGraph step = foreach_step();
  const StepGraph result = changed(step, {.early = true});
  CHECK(result.settings.early_updates);
  CHECK(bytes_of(result, StorageClass::optimizer_state) ==
        bytes_of(step, StorageClass::optimizer_state));
  std::vector<std::string> order;
  for (const KernelNode& node : result.nodes) {
    if (node.phase == Phase::update) order.push_back(node.name);
  }
  CHECK(order == std::vector<std::string>{
                     "sqrt.head.weight", "optimizer.step.head.weight", "sqrt.head.bias",
                     "optimizer.step.head.bias", "sqrt.b.weight", "optimizer.step.b.weight",
                     "sqrt.b.bias", "optimizer.step.b.bias", "sqrt.a.weight",
                     "optimizer.step.a.weight", "sqrt.a.bias", "optimizer.step.a.bias"});
  CHECK(result.nodes.back().phase == Phase::update);
  for (const TensorView& gradient : result.gradients) {
    CHECK(result.script_holds.of(gradient.storage) == ScriptHold{});
  }
}

TEST_CASE("what a script assigns after the update is assigned after the last node there is") {
  StepGraph step = foreach_step();
  const StorageId loss = step.losses.front().storage;
  step.script_holds.set(loss, {.replaced_after = NodeId::of(step.nodes.size() - 1)});
  const StepGraph early = changed(step, {.early = true});
  CHECK(early.script_holds.of(early.losses.front().storage).replaced_after ==
        NodeId::of(early.nodes.size() - 1));
  const StepGraph host = changed(step, {.on_host = UpdateChoice::OnHost::all});
  CHECK(host.script_holds.of(host.losses.front().storage).replaced_after.index() <
        host.nodes.size());
}

TEST_CASE("what an update holds beside its own tensors is held to the step's end") {
  StepGraph step = updating_step();
  // As a recorded script holds its model's output, which it lets go with the step.
  const KernelNode& act = *std::ranges::find(step.nodes, "act.forward", &KernelNode::name);
  const StorageId output = act.writes.front().storage;
  step.nodes.back().holds.push_back(output);
  step.nodes.back().holds.push_back(step.gradients.back().storage);
  const std::string name = step.storage(output).name;
  const std::string gradient = step.storage(step.gradients.back().storage).name;
  const auto held = [&](const StepGraph& graph) {
    std::vector<std::string> names;
    for (const auto& [storage, hold] : graph.script_holds) {
      if (hold.held_to_end) names.push_back(graph.storage(storage).name);
    }
    return std::ranges::count(names, name) == 1 && !std::ranges::count(names, gradient);
  };
  CHECK(!held(step));
  CHECK(held(moved(step)));
  CHECK(held(changed(step, {.early = true})));
}

TEST_CASE("early updates run beside those on the host") {
  const StepGraph result = changed(
      foreach_step(),
      {.on_host = UpdateChoice::OnHost::some, .parameters = {ParameterId::of(0)}, .early = true});
  CHECK(count_of(result, offload_kernel) == 1);
  const auto updates = std::ranges::count_if(result.nodes, [](const KernelNode& node) {
    return node.phase == Phase::update && kernel_name(node) != fetch_kernel;
  });
  CHECK(updates == 10);
  CHECK(kernel_name(result.nodes.back()) == fetch_kernel);
}

TEST_CASE("updates that cannot be divided or come early stay together") {
  StepGraph step = updating_step();
  const UpdateChoice early{.early = true};
  const UpdateChoice some{.on_host = UpdateChoice::OnHost::some,
                          .parameters = {ParameterId::of(1)}};
  const auto update = std::ranges::find(step.nodes, Phase::update, &KernelNode::phase);
  TensorView norm = step.losses.front();
  norm.storage = StorageId::of(step.storages.size());
  step.storages.push_back({.name = "norm", .bytes = 4});
  update->writes.push_back(norm);
  const std::string together = "'" + update->name + "' works on several parameters together";
  CHECK(choice_refusal(step, early) == together);
  CHECK(choice_refusal(step, some) == together);
  step = updating_step();
  step.settings.optimizer.name = "lamb";
  CHECK(choice_refusal(step, early) == "lamb is no optimizer of torch.optim");
  CHECK(moved(step).host_buffers.size() == 2);
  step = updating_step();
  step.nodes.push_back(step.nodes.front());
  CHECK(choice_refusal(step, early) ==
        "'" + step.nodes.front().name + "' runs after the first update");
  step = updating_step();
  KernelNode again = *std::ranges::find_if(step.nodes, [&](const KernelNode& node) {
    return node.phase == Phase::backward &&
           std::ranges::find(node.writes, step.gradients[0].storage, &TensorView::storage) !=
               node.writes.end();
  });
  const auto end = std::ranges::find(step.nodes, Phase::update, &KernelNode::phase);
  again.reads.clear();
  again.writes = {step.gradients[0]};
  again.name = "second";
  again.convolution = -1;
  const KernelNode first = step.nodes.front();  // inserting moves them
  step.nodes.insert(step.nodes.insert(end, again), first);
  CHECK(choice_refusal(step, early) == "several backward passes add to 'a.weight.grad'");
}

}  // namespace stowage
