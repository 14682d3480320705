// Settings that change how a step runs do not change its results: checkpointed regions, gradients
// that persist, augmentation. Every result is compared, bit by bit, with the plain step's.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "estimator/rewrite/early_updates.hpp"
#include "estimator/rewrite/node_order.hpp"
#include "estimator/rewrite/recompute.hpp"
#include "estimator/rewrite/rerun_groups.hpp"
#include "estimator/rewrite/segments.hpp"
#include "estimator/step/node_dependences.hpp"
#include "gpu_probe/run/resident_step.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {

namespace {

using Bytes = std::vector<std::byte>;

/// Losses, gradients, and all that the step leaves, by name.
std::map<std::string, Bytes> results_by_name(const StepGraph& graph) {
  constexpr std::int64_t batch = 4;
  const auto results = run_resident_step(graph, batch);
  REQUIRE(results.has_value());
  std::map<std::string, Bytes> named;
  for (std::size_t i = 0; i < graph.losses.size(); ++i) {
    named["loss " + std::to_string(i)] = results->at(graph.losses[i].storage);
  }
  for (std::size_t i = 0; i < graph.gradients.size(); ++i) {
    if (!graph.gradients[i].storage.valid()) continue;
    named["gradient " + std::to_string(i)] = results->at(graph.gradients[i].storage);
  }
  for (const auto& [id, bytes] : *results) {
    const Storage& storage = graph.storage(id);
    if (storage.persistence != Persistence::persistent) continue;
    if (storage.storage_class == StorageClass::gradient) continue;
    named[storage.name] = bytes;
  }
  return named;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string checkpointed_gpt2() {
  return replaced(small_gpt2, "{name: h, repeat: 2}", "{name: h, repeat: 2, checkpoint: true}");
}

std::string checkpointed_resnet() {
  const std::string one = replaced(small_resnet, "{name: layer1, channels: 8}",
                                   "{name: layer1, channels: 8, checkpoint: true}");
  return replaced(one, "{name: layer2, channels: 12, stride: 2}",
                  "{name: layer2, channels: 12, stride: 2, checkpoint: true}");
}

/// The step with every group of kernels recomputed that may be; or with about half of them, some of
/// them twice.
StepGraph with_values_made_again(const StepGraph& graph, std::mt19937* half = nullptr) {
  std::vector<std::string> backward;
  for (const KernelNode& node : graph.nodes) {
    if (node.phase == Phase::backward) backward.push_back(node.name);
  }
  std::vector<RecomputedValue> values;
  for (const RerunGroup& group : rerun_groups(graph).groups) {
    if (group.makes.empty() || (half != nullptr && (*half)() % 2 == 0)) continue;
    values.push_back({graph.storage(group.makes.front()).name});
    if (half == nullptr || (*half)() % 4 != 0) continue;
    values.push_back({values.back().value, backward[(*half)() % backward.size()]});
  }
  auto step = with_recomputation(graph, values);
  REQUIRE_MESSAGE(step.has_value(), render(step.error()));
  return *std::move(step);
}

/// A random order in which every node comes after those that it depends on.
std::vector<std::int32_t> any_order(const StepGraph& graph, std::mt19937& random) {
  const auto before = node_dependences(graph);
  std::vector<bool> done(before.size(), false);
  std::vector<std::int32_t> order;
  while (order.size() < before.size()) {
    std::vector<std::int32_t> ready;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (!done[i] && std::ranges::all_of(before[i], [&](std::int32_t needed) {
            return done[static_cast<std::size_t>(needed)];
          })) {
        ready.push_back(static_cast<std::int32_t>(i));
      }
    }
    order.push_back(ready[random() % ready.size()]);
    done[static_cast<std::size_t>(order.back())] = true;
  }
  return order;
}

int recomputed_nodes(const StepGraph& graph) {
  return static_cast<int>(std::count_if(
      graph.nodes.begin(), graph.nodes.end(),
      [](const KernelNode& node) { return node.name.find(".recomputed") != std::string::npos; }));
}

}  // namespace

TEST_CASE("a checkpointed step computes what the plain one does, running statistics included") {
  for (const int micro_batches : {1, 2}) {
    CAPTURE(micro_batches);
    const StepGraph gpt2 = step_of(checkpointed_gpt2().c_str(), adamw(micro_batches));
    const StepGraph resnet = step_of(checkpointed_resnet().c_str(), sgd_momentum(micro_batches));
    CHECK(recomputed_nodes(gpt2) > 20 * micro_batches);
    CHECK(recomputed_nodes(resnet) > 10 * micro_batches);
    CHECK(results_by_name(gpt2) == results_by_name(step_of(small_gpt2, adamw(micro_batches))));
    CHECK(results_by_name(resnet) ==
          results_by_name(step_of(small_resnet, sgd_momentum(micro_batches))));
  }
}

TEST_CASE("working in place changes no result, whatever else is rewritten") {
  std::mt19937 random(7);
  for (const int micro_batches : {1, 2}) {
    CAPTURE(micro_batches);
    const std::string gpt2 = checkpointed_gpt2(), resnet = checkpointed_resnet();
    for (const char* text :
         {small_gpt2, small_resnet, small_unet, small_cnn, mlp, gpt2.c_str(), resnet.c_str()}) {
      const bool adam = text == small_gpt2 || text == gpt2.c_str();
      LoweringSettings settings = adam ? adamw(micro_batches) : sgd_momentum(micro_batches);
      const StepGraph in_place = step_of(text, settings);
      settings.in_place = false;
      const StepGraph apart = step_of(text, settings);
      CAPTURE(apart.model);
      CHECK(in_place.storages.size() < apart.storages.size());
      const auto plain = results_by_name(apart);
      CHECK(results_by_name(in_place) == plain);
      const StepGraph again = with_values_made_again(in_place, &random);
      CHECK(results_by_name(again) == plain);
      const auto early = with_early_updates(again);
      REQUIRE(early.has_value());
      CHECK(results_by_name(*early) == plain);
      const auto moved = with_order(again, runs_of_order(again, any_order(again, random)));
      REQUIRE_MESSAGE(moved.has_value(), render(moved.error()));
      CHECK(results_by_name(*moved) == plain);
    }
  }
}

TEST_CASE("early updates compute what late ones do") {
  for (const int micro_batches : {1, 2}) {
    CAPTURE(micro_batches);
    LoweringSettings adam = adamw(micro_batches), sgd = sgd_momentum(micro_batches);
    const auto gpt2 = results_by_name(step_of(small_gpt2, adam));
    const auto resnet = results_by_name(step_of(small_resnet, sgd));
    adam.early_updates = sgd.early_updates = true;
    CHECK(results_by_name(step_of(small_gpt2, adam)) == gpt2);
    CHECK(results_by_name(step_of(small_resnet, sgd)) == resnet);
  }
}

TEST_CASE("recomputed values are those that were let go: no result changes") {
  std::mt19937 random(11);
  for (const int micro_batches : {1, 2}) {
    CAPTURE(micro_batches);
    for (const char* text : {small_gpt2, small_resnet, small_unet, small_cnn, mlp}) {
      const StepGraph graph =
          step_of(text, text == small_gpt2 ? adamw(micro_batches) : sgd_momentum(micro_batches));
      CAPTURE(graph.model);
      const auto plain = results_by_name(graph);
      const StepGraph all = with_values_made_again(graph);
      CHECK(recomputed_nodes(all) > 2 * micro_batches);
      CHECK(results_by_name(all) == plain);
      for (int trial = 0; trial < 3; ++trial) {
        const StepGraph half = with_values_made_again(graph, &random);
        CHECK(results_by_name(half) == plain);
        const auto early = with_early_updates(half);
        REQUIRE(early.has_value());
        CHECK(results_by_name(*early) == plain);
      }
    }
  }
}

TEST_CASE("segments of an inference compute what its chunks do, and those what the batch does") {
  for (const char* text : {small_gpt2, small_resnet, small_unet, small_cnn, mlp}) {
    const LoweringSettings whole{.mode = Mode::inference};
    LoweringSettings chunked = whole;
    chunked.micro_batches = 4;
    const StepGraph plain = step_of(text, whole), chunks = step_of(text, chunked);
    CAPTURE(plain.model);
    const auto length = static_cast<std::int32_t>(plain.nodes.size());
    const auto segments = with_segments(chunks, {length / 3, length / 2});
    REQUIRE_MESSAGE(segments.has_value(), render(segments.error()));
    CHECK(segment_count(*segments) == 3);
    const auto in_chunks = run_resident_step(chunks, 4);
    const auto in_segments = run_resident_step(*segments, 4);
    REQUIRE(in_chunks.has_value());
    REQUIRE(in_segments.has_value());
    CHECK(*in_segments == *in_chunks);
    CHECK(in_segments->contains(segments->output.storage));
  }
}

TEST_CASE("a step in any order that keeps its dependences computes the same") {
  std::mt19937 random(3);
  for (const int micro_batches : {1, 2}) {
    for (const char* text : {small_gpt2, small_resnet, small_unet, small_cnn, mlp}) {
      const StepGraph graph =
          step_of(text, text == small_gpt2 ? adamw(micro_batches) : sgd_momentum(micro_batches));
      CAPTURE(graph.model);
      const auto plain = results_by_name(graph);
      for (int trial = 0; trial < 3; ++trial) {
        const auto moved = with_order(graph, runs_of_order(graph, any_order(graph, random)));
        REQUIRE_MESSAGE(moved.has_value(), render(moved.error()));
        CHECK(results_by_name(*moved) == plain);
      }
    }
  }
}

TEST_CASE("gradients that persist are those that do not") {
  for (const int micro_batches : {1, 3}) {
    CAPTURE(micro_batches);
    LoweringSettings settings = sgd_momentum(micro_batches);
    const auto plain = results_by_name(step_of(small_resnet, settings));
    settings.step.zero_grad = ZeroGrad::to_zero;
    CHECK(results_by_name(step_of(small_resnet, settings)) == plain);
  }
}

TEST_CASE("augmented copies and prefetched batches change no result") {
  LoweringSettings settings = sgd_momentum();
  const auto plain = results_by_name(step_of(small_cnn, settings));
  settings.step.augment = 2;
  settings.step.prefetch = 3;
  CHECK(results_by_name(step_of(small_cnn, settings)) == plain);
}

}  // namespace stowage::test
