// A model weighs the same recorded and lowered: tests/recorded has what the recorder wrote of some
// shipped models at batch 2 (tests/reference/recorded_steps.py has them all).
#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "estimator/document/make_document.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/recorded/complete_step.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

namespace {

StepDocument recorded_document(const std::string& name) {
  const std::string path = testing::source_path("/tests/recorded/" + name + ".json");
  auto document = read_whole_step(
      std::make_shared<const SourceText>(SourceText{path, testing::file_text(path)}));
  if (!document) FAIL(render(document.error()));
  return *std::move(document);
}

StepDocument lowered_document(const std::string& name, const StepGraph& recorded) {
  ModelOptions options;
  if (name == "unet") options.arguments["size"] = "64";  // as the reference was recorded
  const ModelGraph model = testing::shipped(name, options);
  const auto chosen = choose_step(model, {.optimizer = recorded.settings.optimizer.name});
  REQUIRE(chosen.has_value());
  auto document = make_document(model, *chosen, Runtime::pytorch, std::nullopt);
  REQUIRE(document.has_value());
  return *std::move(document);
}

struct Weights {
  std::array<Bytes, 4> peaks;  ///< by Phase
  Bytes saved;
  std::int64_t parameters = 0;
};

Weights weights_of(const StepDocument& document, std::int64_t batch, StepNumber number) {
  const auto source = rule_workspace_source(8.6);
  const auto step = size_step(document.graph, batch, *source);
  REQUIRE(step.has_value());
  Weights weights;
  const auto live = live_bytes(*step, {.step = number, .granularity = Bytes(512)},
                               storage_touches(*document.graph));
  for (std::size_t i = 0; i < live.size(); ++i) {
    Bytes& peak = weights.peaks[static_cast<std::size_t>(document.graph->nodes[i].phase)];
    peak = std::max(peak, live[i]);
  }
  for (const Layer& layer : document.layers) weights.saved += Bytes(layer.saved_bytes.at(batch));
  for (const Parameter& parameter : document.parameters) {
    if (!parameter.is_buffer) weights.parameters += element_count(parameter.type.shape).constant;
  }
  return weights;
}

}  // namespace

TEST_CASE("recorded and lowered steps have equal peaks in every phase, at any batch") {
  for (const std::string name : {"mlp", "resnet18", "unet"}) {
    const StepDocument recorded = recorded_document(name);
    CHECK(recorded.warnings.empty());
    const StepDocument lowered = lowered_document(name, *recorded.graph);
    for (const std::int64_t batch : {1, 2, 64}) {
      for (const StepNumber number : {StepNumber::first, StepNumber::steady}) {
        CAPTURE(name);
        CAPTURE(batch);
        CAPTURE(static_cast<int>(number));
        const Weights ours = weights_of(recorded, batch, number),
                      theirs = weights_of(lowered, batch, number);
        CHECK(ours.parameters == theirs.parameters);
        CHECK(ours.saved == theirs.saved);
        for (std::size_t phase = 0; phase < ours.peaks.size(); ++phase) {
          CAPTURE(phase);
          CHECK(ours.peaks[phase].count() == theirs.peaks[phase].count());
        }
      }
    }
  }
}

TEST_CASE("a recorded convolution asks for the workspaces that the lowered one asks for") {
  for (const std::string name : {"resnet18", "unet"}) {
    CAPTURE(name);
    const StepDocument recorded = recorded_document(name);
    const StepDocument lowered = lowered_document(name, *recorded.graph);
    const auto& ours = recorded.graph->convolutions;
    const auto& theirs = lowered.graph->convolutions;
    REQUIRE(ours.size() == theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      CAPTURE(i);
      CHECK(ours[i].direction == theirs[i].direction);
      CHECK(to_string(ours[i].x.shape) == to_string(theirs[i].x.shape));
      CHECK(to_string(ours[i].w.shape) == to_string(theirs[i].w.shape));
      CHECK(to_string(ours[i].y.shape) == to_string(theirs[i].y.shape));
      CHECK(ours[i].window->padding == theirs[i].window->padding);
      CHECK(ours[i] == theirs[i]);
    }
  }
}

}  // namespace stowage
