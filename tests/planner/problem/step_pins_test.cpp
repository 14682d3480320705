#include "planner/problem/step_pins.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "estimator/document/make_document.hpp"
#include "estimator/rewrite/micro_batches.hpp"
#include "estimator/step/gpu_kernels.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

constexpr const char* network = R"(model: net
inputs:
  tokens: {shape: [batch, 8], dtype: int64}
  label: {shape: [batch], dtype: int64}
blocks:
  stage:
    arguments: {features: }
    layers:
      - linear: {name: fc, features: features}
      - relu: {name: act}
layers:
  - embedding: {name: words, count: 100, features: 16}
  - stage: {name: encoder, features: 16, repeat: 2}
  - flatten: {name: flat}
  - linear: {name: head, features: 10}
loss:
  cross_entropy: {from: [head, label]}
)";

StepDocument document() {
  const ChosenStep step{.lowering = {.optimizer = {.name = "sgd"}}};
  return make_document(testing::described(network), step, Runtime::stowage, {}, step_alone).value();
}

DevicePin pin(const std::string& text, bool overrides = false) {
  const std::size_t equals = text.rfind('=');
  auto parsed = parse_device_pin(text.substr(0, equals), text.substr(equals + 1));
  if (!parsed) FAIL(render(parsed.error()));
  parsed->overrides = overrides;
  return *parsed;
}

PinRequest asked(const std::vector<std::string>& texts) {
  PinRequest request;
  for (const std::string& text : texts) request.pins.push_back(pin(text));
  return request;
}

Result<StepPins> applied(const StepDocument& of, const PinRequest& request) {
  return apply_pins(*of.graph, of.layers, request);
}

// "cpu: a b gpu: c": the nodes that are pinned.
std::string nodes(const StepGraph& graph, const StepPins& pins) {
  std::string cpu = "cpu:", gpu = " gpu:";
  for (std::size_t i = 0; i < pins.nodes.size(); ++i) {
    if (pins.nodes[i].pin == Pin::cpu) cpu += " " + graph.nodes[i].name;
    if (pins.nodes[i].pin == Pin::gpu) gpu += " " + graph.nodes[i].name;
  }
  return cpu + gpu;
}
std::string storages(const StepGraph& graph, const StepPins& pins) {
  std::string cpu = "cpu:", gpu = " gpu:";
  for (std::size_t i = 0; i < pins.storages.size(); ++i) {
    if (pins.storages[i].pin == Pin::cpu) cpu += " " + graph.storages[i].name;
    if (pins.storages[i].pin == Pin::gpu) gpu += " " + graph.storages[i].name;
  }
  return cpu + gpu;
}

std::string all_of(const std::vector<std::string>& texts) {
  const StepDocument of = document();
  const auto pins = applied(of, asked(texts));
  if (!pins) return render(pins.error());
  return nodes(*of.graph, *pins) + " | " + storages(*of.graph, *pins);
}

std::string refusal(const std::vector<std::string>& texts) {
  const auto pins = applied(document(), asked(texts));
  return pins ? "accepted" : render(pins.error());
}

}  // namespace

TEST_CASE("a scope takes its layers' kernels, their updates and their variables") {
  CHECK(all_of({"words=cpu"}) ==
        "cpu: words.forward words.backward update.words.weight gpu: | "
        "cpu: words.weight words.weight.grad gpu:");
  const std::string first = all_of({"encoder.0=cpu"});
  CHECK(first.find("encoder.0.fc.forward encoder.0.act.forward") != std::string::npos);
  CHECK(first.find("update.encoder.0.fc.weight update.encoder.0.fc.bias") != std::string::npos);
  CHECK(first.find("encoder.1") == std::string::npos);
  CHECK(all_of({"encoder.0.*=cpu"}) == first);
  CHECK(all_of({"encoder=cpu"}) == all_of({"encoder.*=cpu"}));
}

TEST_CASE("classes are storages, operators are kernels") {
  CHECK(all_of({"class:parameter=cpu"}) ==
        "cpu: gpu: | cpu: words.weight encoder.0.fc.weight encoder.0.fc.bias encoder.1.fc.weight "
        "encoder.1.fc.bias head.weight head.bias gpu:");
  CHECK(all_of({"class:parameters=cpu"}) == all_of({"class:parameter=cpu"}));
  const std::string embedding = "cpu: words.forward words.backward gpu: | cpu: gpu:";
  CHECK(all_of({"op:embedding=cpu"}) == embedding);
  CHECK(all_of({"op:embedding_*=cpu"}) == embedding);
  CHECK(all_of({"tokens=gpu"}) == "cpu: gpu: | cpu: gpu: tokens");
}

TEST_CASE("of nested scopes the inner one wins, whatever their order") {
  for (const bool inner_first : {false, true}) {
    CAPTURE(inner_first);
    const std::vector<std::string> pins =
        inner_first ? std::vector<std::string>{"encoder.1.*=gpu", "encoder.*=cpu"}
                    : std::vector<std::string>{"encoder.*=cpu", "encoder.1.*=gpu"};
    const StepDocument of = document();
    const auto found = applied(of, asked(pins));
    REQUIRE(found.has_value());
    const std::string text = nodes(*of.graph, *found);
    CHECK(text.find("encoder.0.fc.forward") < text.find("gpu:"));
    CHECK(text.find("encoder.1.fc.forward") > text.find("gpu:"));
  }
  // A scope is within the whole model, which a class and an operator are of.
  CHECK(all_of({"class:parameter=cpu", "head=gpu"}).find("gpu: head.weight head.bias") !=
        std::string::npos);
  CHECK(all_of({"op:linear=cpu", "head=gpu"}).find(" gpu: head.forward") != std::string::npos);
}

TEST_CASE("the command line goes before the description") {
  const StepDocument of = document();
  PinRequest request{.pins = {pin("head.forward=cpu"), pin("*=gpu", true)}};
  const auto found = applied(of, request);
  REQUIRE(found.has_value());
  CHECK(nodes(*of.graph, *found).starts_with("cpu: gpu: words.forward"));
}

TEST_CASE("pins that contradict each other are refused, and both are named") {
  const std::string both = refusal({"head.*=cpu", "head.*=gpu"});
  CHECK(both.find("the pins 'head.*=cpu' and 'head.*=gpu' contradict each other about 'head.") !=
        std::string::npos);
  CHECK(both.find("note: 'head.*=cpu' is the other") != std::string::npos);
  const std::string writer = refusal({"class:parameter=gpu", "update.head.weight=cpu"});
  CHECK(writer.find("'class:parameter=gpu' keeps 'head.weight' on the GPU, and "
                    "'update.head.weight', which writes it, is on the CPU: "
                    "'update.head.weight=cpu'") != std::string::npos);
}

TEST_CASE("what writes a storage that is pinned to the GPU runs there") {
  const std::string kept = all_of({"class:parameter=gpu"});
  CHECK(kept.starts_with("cpu: gpu: update."));
  CHECK(kept.find("update.head.weight") < kept.find(" | "));
  CHECK(kept.find("head.forward") == std::string::npos);
}

TEST_CASE("a pin that fits nothing is refused, with what may be meant") {
  CHECK(refusal({"encodr.*=cpu"}).find("the pin 'encodr.*=cpu' fits nothing in this step") !=
        std::string::npos);
  CHECK(refusal({"encodr.*=cpu"}).find("did you mean 'encoder.*=cpu'?") != std::string::npos);
  CHECK(refusal({"class:paramter=cpu"}).find("did you mean 'class:parameter=cpu'?") !=
        std::string::npos);
  CHECK(refusal({"op:embeding=cpu"}).find("did you mean 'op:embedding=cpu'?") != std::string::npos);
  CHECK(refusal({"class:workspace=cpu"}).find("fits nothing") != std::string::npos);
  CHECK(refusal({"op:zzzzzzzz=cpu"}).find("there are ") != std::string::npos);
}

TEST_CASE("micro-batches share the names of what they repeat") {
  StepDocument of = document();
  of.graph = std::make_shared<const StepGraph>(with_micro_batches(*of.graph, 2).value());
  const auto found = applied(of, asked({"words.forward=cpu"}));
  REQUIRE(found.has_value());
  CHECK(nodes(*of.graph, *found) == "cpu: words.forward@0 words.forward@1 gpu:");
}

TEST_CASE("soft placement moves a kernel that no GPU has, with a note") {
  StepDocument of = document();
  StepGraph graph = *of.graph;
  for (KernelNode& node : graph.nodes) {
    if (node.name == "words.forward") node.attributes.set(gpu_kernel_attribute, false);
  }
  of.graph = std::make_shared<const StepGraph>(std::move(graph));
  const auto soft = applied(of, {});
  REQUIRE(soft.has_value());
  CHECK(nodes(*of.graph, *soft) == "cpu: words.forward gpu:");
  REQUIRE(soft->reasons.size() == 1);
  CHECK(soft->reasons[0] ==
        PinReason{PinReason::Kind::no_gpu_kernel, "the step says that embedding_forward has none"});
  REQUIRE(soft->notes.size() == 1);
  CHECK(soft->notes[0].message ==
        "'words.forward' has no GPU kernel, so soft placement puts it on the CPU: the step says "
        "that embedding_forward has none");

  const auto hard = applied(of, {.soft_placement = false});
  REQUIRE_FALSE(hard.has_value());
  CHECK(hard.error()[0].message ==
        "'words.forward' has no GPU kernel: the step says that embedding_forward has none");
  CHECK(applied(of, {.pins = {pin("words.forward=cpu")}, .soft_placement = false}).has_value());
  // A pin to the GPU cannot be kept, which the note says.
  const auto wanted = applied(of, asked({"words=gpu"}));
  REQUIRE(wanted.has_value());
  REQUIRE(wanted->notes.size() == 1);
  REQUIRE(wanted->notes[0].notes.size() == 1);
  CHECK(wanted->notes[0].notes[0].message == "the pin 'words=gpu' asked for the GPU");
}

TEST_CASE("whether a GPU has a kernel may depend on the format") {
  StepDocument of = document();
  StepGraph graph = *of.graph;
  graph.settings.kernels = KernelSet::pytorch;
  const auto head = std::ranges::find(graph.nodes, "head.forward", &KernelNode::name);
  REQUIRE(head != graph.nodes.end());
  const auto moved = [&](DataType type) {
    head->reads.front().type = type;
    of.graph = std::make_shared<const StepGraph>(graph);
    const auto found = applied(of, {});
    REQUIRE(found.has_value());
    return nodes(*of.graph, *found);
  };
  CHECK(moved(DataType::float16) == "cpu: gpu:");
  CHECK(moved(DataType::int64) == "cpu: head.forward gpu:");
}

TEST_CASE("without pins nothing is kept") {
  const auto none = applied(document(), {});
  REQUIRE(none.has_value());
  CHECK(none->empty());
  CHECK(none->nodes.empty());
  CHECK(none->of(NodeId{0}) == Pin::free);
}

}  // namespace stowage
