// Prefill and decode against transformers' own storages (tests/reference/serving.py).
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/estimator/serving/served_config.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;

namespace {

ModelOptions options_of(const json& row) {
  ModelOptions options{.precision = parse_precision(row["precision"].get<std::string>())};
  for (const auto& [name, value] : row["arguments"].items()) {
    options.arguments[name] = value.dump();
  }
  return options;
}

ServingPasses passes_of(const json& row) {
  ServingSettings settings{.context_length = row["context_length"], .users = row["users"]};
  settings.cache = find_cache_kind(row["cache"].get<std::string>()).value();
  if (!row["prefill_chunk"].is_null()) settings.prefill_chunk = row["prefill_chunk"];
  const auto read = [&](std::int64_t positions) -> Result<ModelGraph> {
    ModelOptions options = options_of(row);
    options.seq = positions;
    return testing::shipped(row["model"], options);
  };
  auto passes = serving_passes(read, settings);
  REQUIRE(passes.has_value());
  return *std::move(passes);
}

json reference_cases() {
  std::ifstream file(testing::source_path("/tests/reference/serving.json"));
  return json::parse(file)["cases"];
}

std::string case_name(const json& row) {
  std::string name = row["model"].get<std::string>() + " " + row["cache"].get<std::string>() + " " +
                     row["precision"].get<std::string>() + " " + row["users"].dump() + "x" +
                     row["context_length"].dump();
  if (!row["prefill_chunk"].is_null()) name += " by " + row["prefill_chunk"].dump();
  return name;
}

}  // namespace

TEST_CASE("a prompt's pass peaks as transformers' does, to the byte, beside what callers hold") {
  for (const json& row : reference_cases()) {
    if (!row["prefill_chunk"].is_null() || row["arguments"].contains("window")) continue;
    CAPTURE(case_name(row));
    const ServingPasses passes = passes_of(row);
    const testing::HeldByCallers held = testing::held_by_callers(row, passes.prefill);
    CHECK(row["prefill"]["rounded_512"].get<std::int64_t>() -
              testing::peak_of_pass(passes.prefill) ==
          held.others - held.last_output);
  }
}

TEST_CASE("no pass is further from transformers than what its callers hold") {
  for (const json& row : reference_cases()) {
    CAPTURE(case_name(row));
    const ServingPasses passes = passes_of(row);
    const auto check = [&](const ServingPass& pass, const char* name) {
      const testing::HeldByCallers held = testing::held_by_callers(row, pass);
      const std::int64_t missing =
          row[name]["rounded_512"].get<std::int64_t>() - testing::peak_of_pass(pass);
      CAPTURE(name);
      CHECK(missing >= -held.last_output);
      CHECK(missing <= held.others);
    };
    check(passes.prefill, "prefill");
    check(passes.decode, "decode");
  }
}

}  // namespace stowage
