// Encoder-decoders against transformers' own storages (tests/reference/serving_encoders.py).
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "estimator/memory/footprint.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/serving/serving_passes.hpp"
#include "tests/estimator/huggingface/described_config.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;

namespace {

json encoder_cases() {
  std::ifstream file(testing::source_path("/tests/reference/serving_encoders.json"));
  return json::parse(file)["cases"];
}

Result<ServingPasses> passes_of_encoder(const json& row) {
  ServingSettings settings{.context_length = row["context_length"], .users = row["users"]};
  settings.cache = find_cache_kind(row["cache"].get<std::string>()).value();
  settings.encoder_length = row["encoder_length"];
  const auto read = [&](std::int64_t positions) -> Result<ModelGraph> {
    const ImportOptions options{
        .seq = positions, .values = {{"attention", "sdpa"}}, .loss = "none"};
    auto imported = testing::imported_text(row["config"].dump(), options);
    if (!imported) return tl::unexpected(imported.error());
    return load_model(imported->description,
                      {.seq = positions,
                       .arguments = options.values,
                       .precision = parse_precision(row["precision"].get<std::string>())});
  };
  return serving_passes(read, settings);
}

SizedStep sized_pass(const ServingPass& pass) {
  const auto graph = testing::lowered(
      pass.model,
      {.kernels = KernelSet::pytorch, .mode = Mode::inference, .compute_capability = 8.0});
  auto step = size_storages(graph, pass.batch);
  REQUIRE(step.has_value());
  return *std::move(step);
}

std::int64_t peak_of_step(const SizedStep& step) {
  const auto live = live_bytes(step, {.granularity = Bytes(512), .with_workspaces = false},
                               storage_touches(*step.graph));
  return std::ranges::max(live).count();
}

/// Of the decoder's attention to itself and to the encoder.
std::pair<std::int64_t, std::int64_t> cached_bytes(const ServingPass& pass) {
  const SizedStep step = sized_pass(pass);
  std::int64_t own = 0, cross = 0;
  for (const Storage& storage : step.graph->storages) {
    const bool is_cached = storage.storage_class == StorageClass::kv_cache &&
                           (storage.name.ends_with(".keys") || storage.name.ends_with(".values"));
    if (!is_cached) continue;
    const bool crosses = storage.name.find("EncDecAttention") != std::string::npos ||
                         storage.name.find("encoder_attn") != std::string::npos;
    (crosses ? cross : own) += storage.bytes.at(pass.batch);
  }
  return {own, cross};
}

}  // namespace

TEST_CASE("the two caches of an encoder-decoder take what transformers' do, to the byte") {
  for (const json& row : encoder_cases()) {
    CAPTURE(row.dump());
    const auto passes = passes_of_encoder(row);
    REQUIRE_MESSAGE(passes.has_value(), (passes ? "" : render(passes.error())));
    const auto [own, cross] = cached_bytes(passes->decode);
    CHECK(own == row["generated"][0].get<std::int64_t>());
    CHECK(cross == row["generated"][1].get<std::int64_t>());
    CHECK(cached_bytes(passes->prefill).second == cross);
    if (!row.contains("traced")) continue;
    CHECK(row["traced"] == row["generated"]);
  }
}

// Python's variables hold the embeddings, a layer's input and what stands between its parts.
TEST_CASE("no pass of an encoder-decoder is further from transformers than four hidden states") {
  for (const json& row : encoder_cases()) {
    if (!row.contains("traced")) continue;
    CAPTURE(row.dump());
    const auto passes = passes_of_encoder(row);
    REQUIRE_MESSAGE(passes.has_value(), (passes ? "" : render(passes.error())));
    const std::int64_t size = row["precision"] == "fp32" ? 4 : 2;
    const std::int64_t users = row["users"], hidden = row["config"]["d_model"];
    const auto check = [&](const ServingPass& pass, const char* name, std::int64_t positions) {
      const std::int64_t states = (users * positions * hidden * size + 511) / 512 * 512;
      const std::int64_t missing =
          row[name]["rounded_512"].get<std::int64_t>() - peak_of_step(sized_pass(pass));
      CAPTURE(name);
      CHECK(missing >= 0);
      CHECK(missing <= 4 * states);
    };
    check(passes->prefill, "prefill", row["encoder_length"].get<std::int64_t>());
    check(passes->decode, "decode", 1);
  }
}

}  // namespace stowage
