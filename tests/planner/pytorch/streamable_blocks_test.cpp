// Which blocks of a step can have their parameters streamed.
#include "planner/pytorch/streamable_blocks.hpp"

#include <doctest/doctest.h>

#include <string>

#include "estimator/adapt/adapt.hpp"
#include "estimator/document/make_document.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

StepDocument document_of(const ModelGraph& model, Mode mode) {
  const ChosenStep step{.lowering = {.kernels = KernelSet::pytorch, .mode = mode}};
  return make_document(model, step, Runtime::pytorch, {}, step_alone).value();
}

std::vector<StreamedBlock> blocks_of(const StepDocument& document) {
  return streamable_blocks(document, *document.graph);
}

/// "h.0: up.weight up.bias; h.1: ..."
std::string shown(const StepDocument& document) {
  std::string text;
  for (const StreamedBlock& block : blocks_of(document)) {
    text += (text.empty() ? "" : "; ") + block.module + ":";
    for (const StorageId id : block.parameters) {
      text += " " + document.graph->storage(id).name.substr(block.module.size() + 1);
    }
  }
  return text;
}

std::string tower(const std::string& last) {
  return R"(model: tower
inputs: {x: {shape: [batch, 32]}, t: {shape: [batch], dtype: int64}}
blocks:
  block:
    layers:
      - linear: {name: up, features: 32}
      - relu: {name: act}
layers:
  - block: {name: h, repeat: 2}
)" + last +
         R"(  - linear: {name: head, features: 10}
loss: {cross_entropy: {from: [head, t]}}
)";
}

ModelGraph adapted(const FineTuningTexts& texts, const std::string& text) {
  auto model = load_adapted(std::make_shared<const SourceText>(SourceText{"tower.yaml", text}),
                            {.fine_tuning = texts});
  if (!model) FAIL(render(model.error()));
  return *std::move(model);
}

}  // namespace

TEST_CASE("all parameters of an inference's blocks can be streamed, and no trained ones") {
  const ModelGraph model = testing::described(tower(""));
  CHECK(shown(document_of(model, Mode::inference)) ==
        "h.0: up.weight up.bias; h.1: up.weight up.bias");
  CHECK(shown(document_of(model, Mode::train)).empty());
}

TEST_CASE("of a step with adapters the frozen base can be streamed") {
  CHECK(shown(document_of(adapted({.lora = "r=2,targets=up"}, tower("")), Mode::train)) ==
        "h.0: up.weight up.bias; h.1: up.weight up.bias");
}

TEST_CASE("quantised weights stay, and a block that has little else is left out") {
  const ModelGraph model = adapted({.lora = "r=2,targets=up", .base = "nf4"}, tower(""));
  const StepDocument document = document_of(model, Mode::train);
  CHECK(shown(document).empty());
  CHECK(has_quantised_weights(*document.graph));
  CHECK_FALSE(
      has_quantised_weights(*document_of(testing::described(tower("")), Mode::inference).graph));
}

TEST_CASE("a tied parameter stays") {
  const std::string tied = "  - linear: {name: last, features: 32, tie: {weight: h.1.up.weight}}\n";
  const auto model =
      load_model(std::make_shared<const SourceText>(SourceText{"tower.yaml", tower(tied)}));
  if (!model) FAIL(render(model.error()));
  CHECK(shown(document_of(*model, Mode::inference)).find("h.1: up.weight") == std::string::npos);
}

TEST_CASE("a recurrent layer's parameters stay") {
  const ModelGraph model = testing::described(R"(model: recurrent
inputs: {x: {shape: [6, batch, 8]}, t: {shape: [6 * batch], dtype: int64}}
blocks:
  block:
    layers:
      - lstm: {name: rnn, hidden: 8}
      - linear: {name: up, features: 64}
      - linear: {name: down, features: 8}
layers:
  - block: {name: h, repeat: 2}
  - flatten: {name: flat, start: 0, end: 1}
loss: {cross_entropy: {from: [flat, t]}}
)");
  CHECK(shown(document_of(model, Mode::inference)) ==
        "h.0: up.weight up.bias down.weight down.bias; "
        "h.1: up.weight up.bias down.weight down.bias");
}

TEST_CASE("the blocks of GPT-2 are spread evenly") {
  const StepDocument document = document_of(testing::shipped("gpt2"), Mode::inference);
  const std::vector<StreamedBlock> blocks = blocks_of(document);
  CHECK(blocks.size() == 12);
  const auto chosen = [&](std::size_t count) {
    std::string text;
    for (const StreamedBlock& block : spread_blocks(blocks, count)) text += block.module + " ";
    return text;
  };
  CHECK(chosen(1) == "h.6 ");
  CHECK(chosen(4) == "h.1 h.4 h.7 h.10 ");
  CHECK(chosen(5) == "h.1 h.3 h.6 h.8 h.10 ");
  CHECK(chosen(12) == "h.0 h.1 h.2 h.3 h.4 h.5 h.6 h.7 h.8 h.9 h.10 h.11 ");
}

}  // namespace stowage
