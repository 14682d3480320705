// A model weighs the same recorded and lowered: tests/recorded has what the recorder wrote of some
// shipped models at batch 2 (tests/reference/recorded_steps.py has them all).
#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "estimator/document/make_document.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/recorded/complete_step.hpp"
#include "estimator/runtime/sum_workspaces.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stowage {

namespace {

StepDocument recorded_document(const std::string& name) {
  const std::string path = testing::source_path("/tests/recorded/" + name + ".json");
  auto document = read_completed_step(
      std::make_shared<const SourceText>(SourceText{path, testing::file_text(path)}));
  if (!document) FAIL(render(document.error()));
  return *std::move(document);
}

constexpr std::int64_t fixture_tokens = 128, fixture_features = 768, index_size = 8, float_size = 4;

// transformers shifts the labels: it pads them, and keeps a copy of what is left of them.
constexpr Affine padded_labels{0, (fixture_tokens + 1) * index_size},
    shifted_labels{0, fixture_tokens*index_size};
// transformers' variable holds the encoder's result while logits and loss are computed.
constexpr Affine held_state{0, fixture_tokens* fixture_features* float_size};

// word_language_model's variable holds the LSTM's last states, two of two layers.
constexpr Affine last_states{0, float_size * 2 * 2 * 650};

/// A recorded step, what the description says to be the same, and what the recorded one has beyond
/// it.
struct Fixture {
  std::string name, model;
  ModelOptions options = {};
  std::vector<Affine> in_forward = {};  ///< live at its peak
  Affine saved = 0;
  std::int64_t from_batch = 1;  ///< at smaller ones forward's peak lies elsewhere
};

const ModelOptions one_layer{.seq = fixture_tokens, .arguments = {{"layers", "1"}}};
const ModelOptions one_layer_autocast{
    .seq = fixture_tokens, .arguments = {{"layers", "1"}}, .precision = Precision::amp_bf16};

const Fixture fixtures[] = {
    {"mlp", "mlp"},
    {"resnet18", "resnet18"},
    {"unet", "unet", {.arguments = {{"size", "64"}}}},
    {"lstm-lm", "lstm-lm", {.seq = 35}, {last_states}, 0, 64},
    {"gpt2-1layer", "gpt2", one_layer, {padded_labels, shifted_labels}, shifted_labels},
    {"gpt2-1layer-amp-bf16",
     "gpt2",
     one_layer_autocast,
     {padded_labels, shifted_labels, held_state},
     shifted_labels},
};

StepDocument lowered_document(const Fixture& fixture, const StepGraph& recorded) {
  const ModelGraph model = testing::shipped(fixture.model, fixture.options);
  const auto chosen = choose_step(model, {.optimizer = recorded.settings.optimizer.name});
  REQUIRE(chosen.has_value());
  auto document = make_document(model, *chosen, Runtime::pytorch, std::nullopt);
  REQUIRE(document.has_value());
  return *std::move(document);
}

/// A loss that the model computes itself is recorded within forward.
enum class Stage { forward, backward, update };

Stage stage_of(Phase phase) {
  if (phase == Phase::backward) return Stage::backward;
  return phase == Phase::update ? Stage::update : Stage::forward;
}

struct Weights {
  std::array<Bytes, 3> peaks;  ///< by Stage
  Bytes saved;
  std::int64_t parameters = 0;
};

Weights weights_of(const StepDocument& document, std::int64_t batch, StepNumber number) {
  const auto source = rule_workspace_source(8.6);
  const auto step = size_step(document.graph, batch, *source);
  REQUIRE(step.has_value());
  Weights weights;
  const auto live = live_bytes(*step, {.step = number}, storage_touches(*document.graph));
  for (std::size_t i = 0; i < live.size(); ++i) {
    Bytes& peak = weights.peaks[static_cast<std::size_t>(stage_of(document.graph->nodes[i].phase))];
    peak = std::max(peak, live[i]);
  }
  for (const Layer& layer : document.layers) weights.saved += Bytes(layer.saved_bytes.at(batch));
  for (const Parameter& parameter : document.parameters) {
    if (!parameter.is_buffer) weights.parameters += element_count(parameter.type.shape).constant;
  }
  return weights;
}

/// In the order of the nodes.
std::vector<Bytes> sum_workspaces(const StepDocument& document, std::int64_t batch) {
  auto step = size_storages(document.graph, batch);
  REQUIRE(step.has_value());
  const SizedStep on_card = with_sum_workspaces(*std::move(step), generic_card(80_GiB));
  std::vector<Bytes> workspaces;
  for (const Engines& engines : on_card.engines) {
    if (!engines.empty()) workspaces.push_back(engines.front().workspace);
  }
  return workspaces;
}

}  // namespace

TEST_CASE("recorded and lowered steps have equal peaks in every phase, at any batch") {
  for (const Fixture& fixture : fixtures) {
    const StepDocument recorded = recorded_document(fixture.name);
    CHECK(recorded.warnings.empty());
    const StepDocument lowered = lowered_document(fixture, *recorded.graph);
    for (const std::int64_t batch : {1, 2, 64}) {
      for (const StepNumber number : {StepNumber::first, StepNumber::steady}) {
        CAPTURE(fixture.name);
        CAPTURE(batch);
        CAPTURE(static_cast<int>(number));
        const Weights ours = weights_of(recorded, batch, number),
                      theirs = weights_of(lowered, batch, number);
        CHECK(ours.parameters == theirs.parameters);
        CHECK(ours.saved.count() == theirs.saved.count() + fixture.saved.at(batch));
        Affine forward = theirs.peaks[0].count();
        for (const Affine& more : fixture.in_forward) {
          if (batch >= fixture.from_batch) forward = forward + more.at(batch);
        }
        CHECK(Affine(ours.peaks[0].count()) == forward);
        CHECK(ours.peaks[1].count() == theirs.peaks[1].count());
        CHECK(ours.peaks[2].count() == theirs.peaks[2].count());
      }
    }
  }
}

TEST_CASE("recorded convolutions ask for the workspaces that the lowered ones ask for") {
  for (const Fixture& fixture : fixtures) {
    CAPTURE(fixture.name);
    const StepDocument recorded = recorded_document(fixture.name);
    const StepDocument lowered = lowered_document(fixture, *recorded.graph);
    CHECK(recorded.graph->convolutions == lowered.graph->convolutions);
  }
}

TEST_CASE("recorded sums want the workspaces that the lowered ones want") {
  for (const Fixture& fixture : fixtures) {
    CAPTURE(fixture.name);
    const StepDocument recorded = recorded_document(fixture.name);
    const StepDocument lowered = lowered_document(fixture, *recorded.graph);
    for (const std::int64_t batch : {2, 64, 2048}) {
      CAPTURE(batch);
      CHECK(sum_workspaces(recorded, batch) == sum_workspaces(lowered, batch));
    }
    if (fixture.name == "gpt2-1layer") CHECK(sum_workspaces(recorded, 64).size() == 4);
  }
}

}  // namespace stowage
