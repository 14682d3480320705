// Which layers of a config.json keep a window of tokens, against transformers' own caches
// (tests/reference/serving_caches.py).
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "estimator/serving/serving_passes.hpp"
#include "tests/estimator/huggingface/described_config.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;

namespace {

json cached_cases() {
  std::ifstream file(testing::source_path("/tests/reference/serving_caches.json"));
  return json::parse(file)["cases"];
}

Result<ModelGraph> model_of_config(const json& config, const std::string& attention,
                                   std::int64_t positions) {
  const ImportOptions options{
      .seq = positions, .values = {{"attention", attention}}, .loss = "none"};
  auto imported = testing::imported_text(config.dump(), options);
  if (!imported) return tl::unexpected(imported.error());
  return load_model(imported->description, {.seq = positions, .arguments = options.values});
}

std::shared_ptr<const StepGraph> decode_of(const json& config, const ServingSettings& settings) {
  const std::string usual = config["model_type"] == "gpt_oss" ? "eager" : "sdpa";
  const std::string attention = settings.cache == CacheKind::paged ? "paged" : usual;
  const auto read = [&](std::int64_t positions) {
    return model_of_config(config, attention, positions);
  };
  const auto passes = serving_passes(read, settings);
  REQUIRE_MESSAGE(passes.has_value(), (passes ? "" : render(passes.error())));
  return testing::lowered(passes->decode.model,
                          {.kernels = KernelSet::pytorch, .mode = Mode::inference});
}

/// The tokens of a user that lie in the keys' storage, layer by layer.
std::vector<std::int64_t> stored_tokens(const StepGraph& graph, std::int64_t bytes_of_a_token) {
  std::vector<std::int64_t> tokens;
  for (const Storage& storage : graph.storages) {
    if (storage.storage_class != StorageClass::kv_cache) continue;
    if (!storage.name.ends_with(".keys")) continue;
    tokens.push_back(storage.bytes.at(1) / bytes_of_a_token);
  }
  return tokens;
}

ServingSettings settings_of_case(const json& row) {
  ServingSettings settings{.context_length = row["context_length"], .users = row["users"]};
  settings.cache = find_cache_kind(row["cache"].get<std::string>()).value();
  return settings;
}

}  // namespace

TEST_CASE("layers with a window keep as many tokens as transformers' caches do") {
  for (const json& row : cached_cases()) {
    const json& config = row["config"];
    CAPTURE(row.dump());
    const auto graph = decode_of(config, settings_of_case(row));
    const std::int64_t of_a_token = config["num_key_value_heads"].get<std::int64_t>() *
                                    config["head_dim"].get<std::int64_t>() * 4;
    CHECK(stored_tokens(*graph, of_a_token) == row["stored"].get<std::vector<std::int64_t>>());
  }
}

TEST_CASE("a paged cache has the blocks of a window, also where scores are capped") {
  const json config{
      {"model_type", "gemma2"},     {"vocab_size", 100},      {"hidden_size", 32},
      {"intermediate_size", 48},    {"num_hidden_layers", 3}, {"num_attention_heads", 4},
      {"num_key_value_heads", 2},   {"head_dim", 8},          {"max_position_embeddings", 128},
      {"query_pre_attn_scalar", 8}, {"sliding_window", 20}};
  const auto graph =
      decode_of(config, {.context_length = 100, .users = 2, .cache = CacheKind::paged});
  CHECK(stored_tokens(*graph, std::int64_t{2} * 8 * 4) == std::vector<std::int64_t>{32, 112, 32});
}

}  // namespace stowage
