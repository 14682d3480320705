// The caches of models with sliding windows, read from a config.json, against transformers' own
// (tests/reference/serving_windows.py).
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "estimator/memory/sized_step.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/serving/serving_passes.hpp"
#include "tests/estimator/huggingface/described_config.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;

namespace {

json window_cases() {
  std::ifstream file(testing::source_path("/tests/reference/serving_windows.json"));
  return json::parse(file)["cases"];
}

ServingPasses passes_of_config(const json& config, const ServingSettings& settings,
                               const ImportOptions& options) {
  const auto imported = testing::imported_text(config.dump(), options);
  REQUIRE(imported.has_value());
  const auto read = [&](std::int64_t positions) {
    return load_model(imported->description, {.seq = positions, .precision = Precision::fp32});
  };
  auto passes = serving_passes(read, settings);
  REQUIRE_MESSAGE(passes.has_value(), render(passes.error()));
  return *std::move(passes);
}

/// By layer, the storage that the step's end leaves the keys in.
std::vector<std::int64_t> key_bytes(const ServingPass& pass) {
  const auto graph = testing::lowered(
      pass.model,
      {.kernels = KernelSet::pytorch, .mode = Mode::inference, .compute_capability = 8.0});
  const auto step = size_storages(graph, pass.batch);
  REQUIRE(step.has_value());
  std::vector<std::int64_t> bytes;
  for (std::size_t i = 0; i < graph->storages.size(); ++i) {
    const Storage& storage = graph->storages[i];
    if (storage.storage_class == StorageClass::kv_cache && storage.name.ends_with(".keys")) {
      bytes.push_back(step->storage_bytes[i].count());
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("each layer of a config.json caches as many bytes of keys as transformers") {
  for (const json& row : window_cases()) {
    ServingSettings settings{.context_length = row["context_length"], .users = row["users"]};
    settings.cache = find_cache_kind(row["cache"].get<std::string>()).value();
    CAPTURE(row["name"].get<std::string>());
    CAPTURE(row["cache"].get<std::string>());
    const ServingPasses passes = passes_of_config(row["config"], settings, {.loss = "none"});
    CHECK(key_bytes(passes.prefill) == row["prefill"].get<std::vector<std::int64_t>>());
    CHECK(key_bytes(passes.decode) == row["decode"].get<std::vector<std::int64_t>>());
  }
}

TEST_CASE("a paged cache keeps a window's blocks, also where transformers writes attention out") {
  const json config{
      {"model_type", "gemma2"}, {"hidden_size", 64},        {"intermediate_size", 96},
      {"num_hidden_layers", 4}, {"num_attention_heads", 4}, {"num_key_value_heads", 2},
      {"head_dim", 16},         {"vocab_size", 100},        {"max_position_embeddings", 512},
      {"sliding_window", 24}};
  const ServingPasses passes =
      passes_of_config(config, {.context_length = 100, .users = 3},
                       {.values = {{"attention", "paged"}}, .loss = "none"});
  // Of a token 2 heads of 16 floats; 24 tokens take two blocks of 16, 100 take seven.
  const std::int64_t token = 3 * 2 * 16 * 4;
  CHECK(key_bytes(passes.decode) ==
        std::vector<std::int64_t>{32 * token, 112 * token, 32 * token, 112 * token});
}

}  // namespace stowage
