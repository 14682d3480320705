// What must hold of every step graph, whatever the model.
#include "estimator/step/lower.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "estimator/step/operator_lowering.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

const std::vector<std::string>& models() {
  static const std::vector<std::string> names{"mlp",      "mnist-cnn", "vgg16", "resnet18",
                                              "resnet50", "unet",      "gpt2",  "keras-deep-16x16"};
  return names;
}

std::vector<LoweringSettings> all_settings() {
  std::vector<LoweringSettings> settings;
  for (const KernelSet kernels : {KernelSet::pytorch, KernelSet::stowage}) {
    for (const int micro_batches : {1, 3}) {
      settings.push_back(
          {.kernels = kernels, .optimizer = {.name = "adamw"}, .micro_batches = micro_batches});
    }
    settings.push_back({.kernels = kernels, .mode = Mode::inference});
  }
  return settings;
}

template <typename Check>
void for_every_step(Check check) {
  for (const std::string& name : models()) {
    const ModelGraph model = testing::shipped(name);
    for (const LoweringSettings& settings : all_settings()) {
      CAPTURE(name);
      CAPTURE(to_string(settings.kernels));
      CAPTURE(to_string(settings.mode));
      CAPTURE(settings.micro_batches);
      check(model, *testing::lowered(model, settings));
    }
  }
}

bool is_there_at_start(const Storage& storage) {
  return storage.persistence != Persistence::transient;
}

}  // namespace

TEST_CASE("whatever a kernel reads was there at the start or has been written") {
  for_every_step([](const ModelGraph&, const StepGraph& graph) {
    std::vector<bool> written(graph.storages.size());
    for (std::size_t i = 0; i < written.size(); ++i) {
      written[i] = is_there_at_start(graph.storages[i]);
    }
    int violations = 0;
    for (const KernelNode& node : graph.nodes) {
      for (const TensorView& view : node.reads) violations += !written[view.storage.index()];
      for (const StorageId held : node.holds) violations += !written[held.index()];
      for (const TensorView& view : node.writes) written[view.storage.index()] = true;
    }
    CHECK(violations == 0);
  });
}

TEST_CASE("names are unique, and phases follow one another in each micro-batch") {
  for_every_step([](const ModelGraph&, const StepGraph& graph) {
    std::set<std::string> nodes, storages;
    for (const KernelNode& node : graph.nodes)
      CHECK_MESSAGE(nodes.insert(node.name).second, node.name);
    for (const Storage& storage : graph.storages) {
      CHECK_MESSAGE(storages.insert(storage.name).second, storage.name);
    }
    const auto order = [](const KernelNode& node) {
      return std::pair(node.phase == Phase::update ? 1 << 20 : node.micro_batch,
                       static_cast<int>(node.phase));
    };
    CHECK(std::is_sorted(graph.nodes.begin(), graph.nodes.end(),
                         [&](const auto& a, const auto& b) { return order(a) < order(b); }));
  });
}

TEST_CASE("our own executor's tensors are contiguous and whole") {
  for_every_step([](const ModelGraph&, const StepGraph& graph) {
    if (graph.settings.kernels != KernelSet::stowage) return;
    int violations = 0;
    for (const KernelNode& node : graph.nodes) {
      for (const auto* views : {&node.reads, &node.writes}) {
        for (const TensorView& view : *views) {
          const bool whole = is_contiguous(view) && view.offset == Affine(0) &&
                             byte_count(view) == graph.storage(view.storage).bytes;
          violations += !whole;
        }
      }
    }
    CHECK(violations == 0);
  });
}

TEST_CASE("every trainable parameter gets one gradient of its shape, and one update") {
  for_every_step([](const ModelGraph& model, const StepGraph& graph) {
    const bool training = graph.settings.mode == Mode::train;
    std::vector<int> updates(graph.storages.size());
    for (const KernelNode& node : graph.nodes) {
      if (node.phase != Phase::update) continue;
      for (const TensorView& view : node.writes) ++updates[view.storage.index()];
    }
    for (std::size_t i = 0; i < model.parameters.size(); ++i) {
      const Parameter& parameter = model.parameters[i];
      CAPTURE(parameter.name);
      const bool wanted = training && parameter.trainable && !parameter.is_buffer;
      REQUIRE(graph.gradients.size() == model.parameters.size());
      CHECK(graph.gradients[i].storage.valid() == wanted);
      if (wanted) CHECK(graph.gradients[i].shape == parameter.type.shape);
    }
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const Storage& storage = graph.storages[i];
      const bool updated = storage.storage_class == StorageClass::optimizer_state ||
                           (storage.storage_class == StorageClass::parameter && training);
      CHECK_MESSAGE(updates[i] == (updated ? 1 : 0), storage.name);
    }
  });
}

TEST_CASE("the same model gives the same step") {
  const ModelGraph model = testing::shipped("gpt2");
  const LoweringSettings settings{.kernels = KernelSet::pytorch, .optimizer = {.name = "adam"}};
  const auto a = testing::lowered(model, settings);
  const auto b = testing::lowered(model, settings);
  REQUIRE(a->nodes.size() == b->nodes.size());
  for (std::size_t i = 0; i < a->nodes.size(); ++i) {
    CHECK(a->nodes[i].name == b->nodes[i].name);
    CHECK(a->nodes[i].holds == b->nodes[i].holds);
  }
}

TEST_CASE("inference makes nothing for backward, and frees as it goes") {
  for_every_step([](const ModelGraph&, const StepGraph& graph) {
    if (graph.settings.mode != Mode::inference) return;
    CHECK(graph.saved.empty());
    CHECK(graph.losses.empty());
    for (const KernelNode& node : graph.nodes) CHECK(node.phase == Phase::forward);
    for (const Storage& storage : graph.storages) {
      CHECK(storage.storage_class != StorageClass::gradient);
      CHECK_FALSE(storage.carries_over);
    }
  });
}

TEST_CASE("our executor overwrites in place only where nobody else reads") {
  // The second relu would overwrite what the first one's backward reads; so would the one after the
  // tensor that `add` reads again.
  const ModelGraph model = testing::described(R"(
model: in-place
inputs:
  x: {shape: [batch, 8]}
  target: {shape: [batch, 8]}
layers:
  - linear: {name: a, features: 8}
  - relu: {name: once, in_place: true}
  - relu: {name: twice, in_place: true}
  - linear: {name: b, features: 8}
  - relu: {name: branch, in_place: true}
  - add: {name: sum, from: [b, branch]}
loss:
  mse: {from: [sum, target]}
)");
  const auto graph = testing::lowered(model, {.kernels = KernelSet::stowage});
  const auto storage_written = [&](const std::string& node) {
    const auto found = std::find_if(graph->nodes.begin(), graph->nodes.end(),
                                    [&](const KernelNode& n) { return n.name == node; });
    REQUIRE(found != graph->nodes.end());
    return graph->storage(found->writes.front().storage).name;
  };
  CHECK(storage_written("once.forward") == "a");
  CHECK(storage_written("twice.forward") == "twice");
  CHECK(storage_written("branch.forward") == "branch");
}

TEST_CASE("a step that calls no kernel is refused") {
  const ModelGraph model = testing::described(R"(
model: views
inputs: {x: {shape: [batch, 2, 3]}}
layers:
  - flatten: {from: x}
)");
  const auto step = lower(model, {.mode = Mode::inference});
  REQUIRE_FALSE(step.has_value());
  CHECK(step.error().front().message ==
        "model 'views' computes nothing in inference: all its layers are views of their inputs");
}

TEST_CASE("training without a loss is refused") {
  const ModelGraph model = testing::described(R"(
model: no-loss
inputs: {x: {shape: [batch, 8]}}
layers:
  - linear: {features: 8}
)");
  const auto graph = lower(model, {});
  REQUIRE(!graph.has_value());
  CHECK(render(graph.error()) ==
        "error: model 'no-loss' has no loss, so that it cannot be trained\n"
        "  add a `loss:` to the description, or run the model forward alone\n");
  CHECK(lower(model, {.mode = Mode::inference}).has_value());
}

}  // namespace stowage
