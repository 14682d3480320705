// Eager attention over a cache against transformers' own storages
// (tests/reference/serving_eager.py).
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/estimator/serving/served_config.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;
using testing::in_blocks_of_512;

namespace {

constexpr std::int64_t hidden = 128, vocabulary = 500;

json eager_cases() {
  std::ifstream file(testing::source_path("/tests/reference/serving_eager.json"));
  return json::parse(file)["cases"];
}

/// What Python's variables hold while attention runs and our graph lets go of.
struct HeldInAttention {
  std::int64_t state = 0;   ///< bytes of one hidden state
  std::int64_t states = 0;  ///< of this size: how many
  std::int64_t others = 0;  ///< position ids, a sliding layer's window as a tensor
  std::int64_t last_output = 0;
};

/// Gemma 2, for its caps of scores, and gpt-oss, for its sinks.
bool is_eager_only(const json& row) {
  const std::string type = row["config"]["model_type"];
  return type == "gemma2" || type == "gpt_oss";
}

HeldInAttention held_in_attention(const json& row, const ServingPass& pass) {
  const json& config = row["config"];
  const std::string type = config["model_type"];
  const std::int64_t size = row["precision"] == "fp32" ? 4 : 2;
  HeldInAttention held{.state = in_blocks_of_512(pass.batch * pass.tokens * hidden * size),
                       .others = in_blocks_of_512(8 * pass.tokens),
                       .last_output = in_blocks_of_512(pass.batch * vocabulary * size)};
  if (type == "opt") {  // the ids of positions, from a mask
    const std::int64_t seen = pass.batch * (pass.past + pass.tokens);
    held.others = in_blocks_of_512(8 * seen) + in_blocks_of_512(4 * seen);
  } else if (type == "gpt_neox") {  // queries, keys and values as one tensor
    held.states = 3;
  }
  // All of Mistral's layers slide, and half of Gemma 2's and of gpt-oss'.
  if (type == "mistral") held.others += 512 * config["num_hidden_layers"].get<std::int64_t>();
  if (is_eager_only(row)) held.others += 512 * config["num_hidden_layers"].get<std::int64_t>() / 2;
  return held;
}

/// While a sliding layer has a whole prompt's keys and values, ours has the last layer's cache too;
/// the trace's first call has not.
std::int64_t last_layers_cache(const json& row, const HeldInAttention& held) {
  const bool mixes = row["cache"] == "static" && is_eager_only(row);
  return mixes ? 2 * held.state / 4 : 0;
}

std::int64_t missing_of(const json& row, const char* name, const ServingPass& pass) {
  return row[name]["rounded_512"].get<std::int64_t>() - testing::peak_of_pass(pass);
}

}  // namespace

TEST_CASE("prompts whose scores are the most peak as transformers' do, to the byte") {
  int compared = 0;
  for (const json& row : eager_cases()) {
    // gpt-oss: the largest score of each row is subtracted.
    const bool scores_are_most = row["prefill"]["op"] == "aten._softmax" ||
                                 row["prefill"]["op"] == "aten.sub.Tensor" || row["users"] == 8;
    if (!scores_are_most) continue;
    CAPTURE(row.dump());
    const auto passes = testing::passes_of_config(row, "eager");
    REQUIRE_MESSAGE(passes.has_value(), (passes ? "" : render(passes.error())));
    const HeldInAttention held = held_in_attention(row, passes->prefill);
    // Of several passes the trace has the last output too.
    const std::int64_t last_output = row["prefill_chunk"].is_null() ? held.last_output : 0;
    const std::int64_t last_cache = last_layers_cache(row, held);
    const std::int64_t named = held.states * held.state + held.others - last_output - last_cache;
    CHECK(missing_of(row, "prefill", passes->prefill) == named);
    ++compared;
  }
  CHECK(compared == 17);
}

TEST_CASE("no pass with eager attention is further from transformers than what variables hold") {
  for (const json& row : eager_cases()) {
    CAPTURE(row.dump());
    const auto passes = testing::passes_of_config(row, "eager");
    REQUIRE_MESSAGE(passes.has_value(), (passes ? "" : render(passes.error())));
    const auto check = [&](const char* name, const ServingPass& pass) {
      CAPTURE(name);
      const HeldInAttention held = held_in_attention(row, pass);
      const std::int64_t missing = missing_of(row, name, pass);
      const std::int64_t last_cache = last_layers_cache(row, held);
      CHECK(missing >= -held.last_output - last_cache);
      CHECK(missing <= held.states * held.state + held.others);
    };
    check("prefill", passes->prefill);
    check("decode", passes->decode);
  }
}

TEST_CASE("a paged cache's own attention takes the place of products") {
  for (const json& row : eager_cases()) {
    if (!row["prefill_chunk"].is_null()) continue;
    CAPTURE(row.dump());
    json paged = row;
    paged["cache"] = "paged";
    const auto products = testing::passes_of_config(paged, "eager");
    REQUIRE_MESSAGE(products.has_value(), (products ? "" : render(products.error())));
    if (is_eager_only(row)) continue;  // has no other attention
    const auto one_call = testing::passes_of_config(paged, "sdpa");
    REQUIRE_MESSAGE(one_call.has_value(), (one_call ? "" : render(one_call.error())));
    CHECK(testing::peak_of_pass(products->prefill) == testing::peak_of_pass(one_call->prefill));
    CHECK(testing::peak_of_pass(products->decode) == testing::peak_of_pass(one_call->decode));
  }
}

// T5's mask is added to its bias by position, and both to the scores.
TEST_CASE("products that hide no later tokens are refused with what serves them") {
  const json row{{"config",
                  {{"model_type", "t5"},
                   {"architectures", {"T5ForConditionalGeneration"}},
                   {"d_model", 96},
                   {"d_kv", 24},
                   {"d_ff", 320},
                   {"num_layers", 2},
                   {"num_heads", 4},
                   {"vocab_size", 500}}},
                 {"precision", "fp32"},
                 {"context_length", 8},
                 {"users", 2},
                 {"cache", "dynamic"}};
  const auto passes = testing::passes_of_config(row, "eager");
  REQUIRE_FALSE(passes.has_value());
  CHECK(passes.error().front().message.find(
            "is written as products, and no mask says that it hides later tokens") !=
        std::string::npos);
  CHECK(passes.error().front().hint ==
        "read a config.json of an older transformers with attention in one call");
  CHECK(testing::passes_of_config(row, "sdpa").has_value());
}

}  // namespace stowage
