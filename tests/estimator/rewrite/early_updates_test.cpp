// A step whose updates come right after their gradients.
#include "estimator/rewrite/early_updates.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "estimator/document/make_document.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/rewrite/lower_step.hpp"

namespace stowage {
namespace {

constexpr std::string_view three_layers = R"(
model: net
inputs: {x: {shape: [batch, 8]}, t: {shape: [batch], dtype: int64}}
layers:
  - linear: {name: first, from: x, features: 16}
  - relu: {name: act}
  - linear: {name: second, features: 16}
  - linear: {name: head, features: 10}
loss: {cross_entropy: {from: [head, t]}}
)";

ModelGraph model_of(std::string_view text) {
  const auto source = std::make_shared<const SourceText>(SourceText{"net.yaml", std::string(text)});
  auto model = load_model(source);
  if (!model) FAIL(render(model.error()));
  return *std::move(model);
}

StepGraph step_of(const LoweringSettings& settings) {
  auto step = lower_step(model_of(three_layers), settings);
  if (!step) FAIL(render(step.error()));
  return *std::move(step);
}

std::size_t place(const StepGraph& step, std::string_view name) {
  const auto found = std::ranges::find(step.nodes, name, &KernelNode::name);
  REQUIRE(found != step.nodes.end());
  return static_cast<std::size_t>(found - step.nodes.begin());
}

std::size_t last_backward(const StepGraph& step) {
  std::size_t last = 0;
  for (std::size_t i = 0; i < step.nodes.size(); ++i) {
    if (step.nodes[i].phase == Phase::backward) last = i;
  }
  return last;
}

/// Of every storage, the nodes that touch it, in order, and whether they write it.
std::vector<std::vector<std::pair<std::string, bool>>> uses(const StepGraph& step) {
  std::vector<std::vector<std::pair<std::string, bool>>> result(step.storages.size());
  for (const KernelNode& node : step.nodes) {
    for (const TensorView& view : node.reads) {
      result[view.storage.index()].emplace_back(node.name, false);
    }
    for (const TensorView& view : node.writes) {
      result[view.storage.index()].emplace_back(node.name, true);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("an update follows the last use of its parameter and the last write of its gradient") {
  const LoweringSettings settings{.optimizer = {.name = "adam"}};
  const StepGraph late = step_of(settings);
  auto early = with_early_updates(late);
  REQUIRE(early.has_value());
  CHECK(early->settings.early_updates);
  REQUIRE(early->nodes.size() == late.nodes.size());
  CHECK(place(late, "update.head.weight") > last_backward(late));
  CHECK(place(*early, "update.head.weight") < place(*early, "second.backward.data"));
  CHECK(place(*early, "update.head.weight") < place(*early, "update.second.weight"));
  CHECK(place(*early, "update.second.weight") < last_backward(*early));
  CHECK(place(*early, "update.first.weight") > place(*early, "update.second.weight"));
  // The values are the same: each storage is read and written by the same nodes in the same order.
  CHECK(uses(*early) == uses(late));
}

TEST_CASE("with micro-batches each update follows the last one's gradient") {
  const StepGraph early = step_of({.micro_batches = 3, .early_updates = true});
  const StepGraph late = step_of({.micro_batches = 3});
  CHECK(uses(early) == uses(late));
  const std::size_t update = place(early, "update.head.weight");
  CHECK(update < last_backward(early));
  CHECK(early.nodes[update - 1].micro_batch == 2);
  CHECK(early.micro_batch.first_node == late.micro_batch.first_node);
  CHECK(early.micro_batch.end_node == late.micro_batch.end_node);
}

TEST_CASE("early updates shorten the lifetimes of gradients") {
  // From the node that makes the head's gradient to the last that uses it.
  const auto nodes_alive = [](const StepGraph& step) {
    const auto all_uses = uses(step);
    const auto& gradient = all_uses[step.gradients.back().storage.index()];
    return place(step, gradient.back().first) - place(step, gradient.front().first);
  };
  CHECK(nodes_alive(step_of({})) > 5);
  CHECK(nodes_alive(step_of({.early_updates = true})) <= 2);
}

TEST_CASE("a step with early updates, and an inference, are refused") {
  CHECK_FALSE(with_early_updates(step_of({.early_updates = true})).has_value());
  CHECK_FALSE(with_early_updates(step_of({.mode = Mode::inference})).has_value());
}

TEST_CASE("a step's file says that its updates are early") {
  const ModelGraph model = model_of(three_layers);
  StepDocument document = make_document(model, {}, Runtime::stowage, {}, step_alone).value();
  CHECK(write_step(document).find("early_updates") == std::string::npos);
  document.graph = std::make_shared<const StepGraph>(*with_early_updates(*document.graph));
  const std::string text = write_step(document);
  CHECK(text.find("\"early_updates\": true") != std::string::npos);
  const auto read = read_step(std::make_shared<const SourceText>(SourceText{"s", text}));
  if (!read) FAIL(render(read.error()));
  CHECK(*read->graph == *document.graph);
}

}  // namespace stowage
