// Encoder-decoders against transformers' own storages (tests/reference/serving_encoders.py).
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/estimator/serving/served_config.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;

namespace {

json encoder_cases() {
  std::ifstream file(testing::source_path("/tests/reference/serving_encoders.json"));
  return json::parse(file)["cases"];
}

/// Of the decoder's attention to itself and to the encoder.
std::pair<std::int64_t, std::int64_t> cached_bytes(const ServingPass& pass) {
  const SizedStep step = testing::sized_pass(pass);
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
    const auto passes = testing::passes_of_config(row, "sdpa");
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
    const auto passes = testing::passes_of_config(row, "sdpa");
    REQUIRE_MESSAGE(passes.has_value(), (passes ? "" : render(passes.error())));
    const std::int64_t size = row["precision"] == "fp32" ? 4 : 2;
    const std::int64_t users = row["users"], hidden = row["config"]["d_model"];
    const auto check = [&](const ServingPass& pass, const char* name, std::int64_t positions) {
      const std::int64_t states = (users * positions * hidden * size + 511) / 512 * 512;
      const std::int64_t missing = row[name]["rounded_512"].get<std::int64_t>() -
                                   testing::peak_of_step(testing::sized_pass(pass));
      CAPTURE(name);
      CHECK(missing >= 0);
      CHECK(missing <= 4 * states);
    };
    check(passes->prefill, "prefill", row["encoder_length"].get<std::int64_t>());
    check(passes->decode, "decode", 1);
  }
}

}  // namespace stowage
