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
    const auto passes = testing::passes_of_config(row, row["attention"]);
    REQUIRE_MESSAGE(passes.has_value(), (passes ? "" : render(passes.error())));
    const auto [own, cross] = cached_bytes(passes->decode);
    CHECK(own == row["generated"][0].get<std::int64_t>());
    CHECK(cross == row["generated"][1].get<std::int64_t>());
    CHECK(cached_bytes(passes->prefill).second == cross);
    if (!row.contains("traced")) continue;
    CHECK(row["traced"] == row["generated"]);
  }
}

// What Python's variables hold and our graph lets go of, of each trace's peak by name.
namespace {

std::int64_t missing_in(const json& row, const char* name, const ServingPass& pass) {
  return row[name]["rounded_512"].get<std::int64_t>() - testing::peak_of_pass(pass);
}

/// Of so many positions of each user.
std::int64_t state_bytes(const json& row, std::int64_t positions) {
  const std::int64_t size = row["precision"] == "fp32" ? 4 : 2;
  return testing::in_blocks_of_512(row["users"].get<std::int64_t>() * positions *
                                   row["config"]["d_model"].get<std::int64_t>() * size);
}

/// Ours is a step among others, whose last output is still there; the trace's first is not.
std::int64_t output_bytes(const json& row) {
  const std::int64_t size = row["precision"] == "fp32" ? 4 : 2;
  return testing::in_blocks_of_512(row["users"].get<std::int64_t>() * size *
                                   row["config"]["vocab_size"].get<std::int64_t>());
}

/// Beside hidden states, while a token's keys and values are joined with those before.
std::int64_t others_of_token(const json& row) {
  const std::string type = row["config"]["model_type"];
  const std::int64_t users = row["users"], context = row["context_length"];
  const std::int64_t size = row["precision"] == "fp32" ? 4 : 2;
  if (type == "t5") {  // the bias by position before its heads come first
    return testing::in_blocks_of_512(context * row["config"]["num_heads"].get<std::int64_t>() *
                                     size);
  }
  const std::int64_t positions = testing::in_blocks_of_512(8 * users);
  if (type == "whisper") return positions;
  // A position for all users, and a mask that is made and not used.
  return 512 + testing::in_blocks_of_512(users * context);
}

}  // namespace

TEST_CASE("a token behind an encoder peaks as transformers' does, to the byte, but for variables") {
  int compared = 0;
  for (const json& row : encoder_cases()) {
    // The one that peaks elsewhere has a context of two tokens.
    const bool joins = row.contains("traced") && row["decode"]["op"] == "aten.cat";
    if (!joins || row["attention"] != "sdpa") continue;
    CAPTURE(row.dump());
    const auto passes = testing::passes_of_config(row, row["attention"]);
    REQUIRE_MESSAGE(passes.has_value(), (passes ? "" : render(passes.error())));
    CHECK(missing_in(row, "decode", passes->decode) == others_of_token(row));
    ++compared;
  }
  CHECK(compared == 7);
}

TEST_CASE("T5's encoder peaks as transformers' does, to the byte, but for variables") {
  for (const json& row : encoder_cases()) {
    if (!row.contains("traced") || row["config"]["model_type"] != "t5") continue;
    CAPTURE(row.dump());
    const auto passes = testing::passes_of_config(row, row["attention"]);
    REQUIRE_MESSAGE(passes.has_value(), (passes ? "" : render(passes.error())));
    // While the bias by position is made: what the norm made, and its queries, keys and values,
    // which our description makes afterwards.
    const std::int64_t states = row["prefill"]["op"] == "aten.relu" ? 0 : 4;
    CHECK(missing_in(row, "prefill", passes->prefill) ==
          states * state_bytes(row, row["encoder_length"]) - output_bytes(row));
  }
}

TEST_CASE("no pass of an encoder-decoder is further from transformers than what variables hold") {
  for (const json& row : encoder_cases()) {
    if (!row.contains("traced")) continue;
    CAPTURE(row.dump());
    const auto passes = testing::passes_of_config(row, row["attention"]);
    REQUIRE_MESSAGE(passes.has_value(), (passes ? "" : render(passes.error())));
    const std::int64_t length = row["encoder_length"];
    const bool is_bias = row["prefill"]["op"] == "aten.minimum";
    const std::int64_t prefill = missing_in(row, "prefill", passes->prefill);
    // Ours makes the ids of BART's and Whisper's decoder before the encoder runs.
    CHECK(prefill >= -output_bytes(row) - 512);
    CHECK(prefill <= (is_bias ? 4 * state_bytes(row, length) : 0));
    const std::int64_t decode = missing_in(row, "decode", passes->decode);
    CHECK(decode >= -output_bytes(row));
    CHECK(decode <= others_of_token(row));
  }
}

}  // namespace stowage
