// Quantised caches against transformers' own storages (tests/reference/serving_quantised.py).
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/estimator/serving/served_config.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;
using testing::in_blocks_of_512;

namespace {

json quantised_cases() {
  std::ifstream file(testing::source_path("/tests/reference/serving_quantised.json"));
  return json::parse(file)["cases"];
}

ServingPasses passes_of_quantised(const json& row) {
  ServingSettings settings{.context_length = row["context_length"], .users = row["users"]};
  settings.cache = CacheKind::quantised;
  settings.format = find_cache_format(row["kv_dtype"].get<std::string>()).value();
  if (!row["residual"].is_null()) settings.residual = row["residual"];
  const auto read = [&](std::int64_t positions) -> Result<ModelGraph> {
    ModelOptions options{.precision = parse_precision(row["precision"].get<std::string>())};
    for (const auto& [name, value] : row["arguments"].items()) {
      options.arguments[name] = value.dump();
    }
    options.seq = positions;
    return testing::shipped(row["model"], options);
  };
  auto passes = serving_passes(read, settings);
  REQUIRE_MESSAGE(passes.has_value(), (passes ? "" : render(passes.error())));
  return *std::move(passes);
}

/// What of the cache is there when the pass has ended.
std::int64_t kept_cache(const SizedStep& step) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < step.graph->storages.size(); ++i) {
    const Storage& storage = step.graph->storages[i];
    const ScriptHold& hold = step.graph->script_holds.of(StorageId::of(i));
    const bool stays = hold.held_to_end || storage.carries_over;
    if (storage.storage_class != StorageClass::kv_cache || !stays) continue;
    bytes += in_blocks_of_512(step.storage_bytes[i].count());
  }
  return bytes;
}

}  // namespace

TEST_CASE(
    "prompts that are quantised peak as transformers' do, to the byte, beside what callers hold") {
  for (const json& row : quantised_cases()) {
    CAPTURE(row.dump());
    const ServingPass prefill = passes_of_quantised(row).prefill;
    const testing::HeldByCallers held = testing::held_by_callers(row, prefill);
    const std::int64_t missing =
        row["prefill"]["rounded_512"].get<std::int64_t>() - testing::peak_of_pass(prefill);
    CHECK(missing == held.others - held.last_output);
  }
}

TEST_CASE("a token that has all quantised anew takes no less than what callers hold beside it") {
  for (const json& row : quantised_cases()) {
    CAPTURE(row.dump());
    const ServingPass decode = passes_of_quantised(row).decode;
    const testing::HeldByCallers held = testing::held_by_callers(row, decode);
    const std::int64_t missing =
        row["decode"]["rounded_512"].get<std::int64_t>() - testing::peak_of_pass(decode);
    CHECK(missing >= -held.last_output);
    CHECK(missing <= held.others);
  }
}

TEST_CASE("a quantised cache keeps the bytes that transformers' does") {
  for (const json& row : quantised_cases()) {
    CAPTURE(row.dump());
    const ServingPasses passes = passes_of_quantised(row);
    CHECK(kept_cache(testing::sized_pass(passes.prefill)) == row["prefill"]["held"]);
    CHECK(kept_cache(testing::sized_pass(passes.decode)) == row["decode"]["held"]);
  }
}

// The first context of whose tokens all are quantised anew is one longer than the residual length.
TEST_CASE("a longer context or more users never take less of a quantised cache") {
  // 64 elements a token: an odd number of groups.
  json row{{"model", "llama-3-8b"},
           {"arguments",
            {{"hidden", 64},
             {"layers", 2},
             {"heads", 2},
             {"kv_heads", 2},
             {"head", 32},
             {"inner", 128},
             {"vocab", 100}}},
           {"precision", "bf16"},
           {"residual", 8},
           {"users", 3}};
  const auto peaks = [&] {
    const ServingPasses passes = passes_of_quantised(row);
    return std::pair(testing::peak_of_pass(passes.prefill), testing::peak_of_pass(passes.decode));
  };
  for (const char* form : {"int4", "int2", "fp8"}) {
    row["kv_dtype"] = form;
    std::pair<std::int64_t, std::int64_t> last{0, 0};
    for (std::int64_t context = 1; context < 20; ++context) {
      row["context_length"] = context;
      const auto now = peaks();
      CAPTURE(form);
      CAPTURE(context);
      CHECK(now.first >= last.first);
      CHECK(now.second >= last.second);
      last = now;
    }
    last = {0, 0};
    for (std::int64_t users = 1; users < 10; ++users) {
      row["users"] = users;
      const auto now = peaks();
      CAPTURE(form);
      CAPTURE(users);
      CHECK(now.first >= last.first);
      CHECK(now.second >= last.second);
      last = now;
    }
    row["users"] = 3;
  }
}

}  // namespace stowage
