// Prefill and decode against transformers' own storages (tests/reference/serving.py).
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "estimator/memory/footprint.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/serving/serving_passes.hpp"
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

/// As PyTorch's allocator counts, on an A100, as which the shim answers.
std::int64_t peak_of_pass(const ServingPass& pass) {
  const auto graph = testing::lowered(
      pass.model,
      {.kernels = KernelSet::pytorch, .mode = Mode::inference, .compute_capability = 8.0});
  const auto step = size_storages(graph, pass.batch);
  REQUIRE(step.has_value());
  const auto live = live_bytes(*step, {.granularity = Bytes(512), .with_workspaces = false},
                               storage_touches(*graph));
  return std::ranges::max(live).count();
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

/// What Python's variables hold while a layer runs and our graph of an inference lets go of: named
/// here, so that the rest is equal to the byte.
struct HeldByCallers {
  std::int64_t hidden_states = 0;  ///< the embeddings, a block's input, the MLP's input
  std::int64_t tables = 0;         ///< cosines and sines, or position embeddings
  std::int64_t others = 0;         ///< position ids, a window's mask
  /// Ours is a step among others, whose last output is still there; the trace's is the first.
  std::int64_t last_output = 0;
};

std::int64_t in_pages_of_512(std::int64_t bytes) { return (bytes + 511) / 512 * 512; }

HeldByCallers held_by_callers(const json& row, const ServingPass& pass) {
  const json& arguments = row["arguments"];
  const std::int64_t size = row["precision"] == "fp32" ? 4 : 2;
  const std::int64_t hidden = arguments["hidden"], vocabulary = arguments["vocab"];
  const std::int64_t states = in_pages_of_512(pass.batch * pass.tokens * hidden * size);
  HeldByCallers held{.last_output = in_pages_of_512(pass.batch * vocabulary * size)};
  if (row["model"] == "gpt2") {  // the sum of both embeddings beside the tokens' own
    held.hidden_states = 4 * states;
    held.tables = in_pages_of_512(pass.tokens * hidden * size);
  } else {
    const std::int64_t head = arguments["head"];
    held.hidden_states = 3 * states;
    held.tables = 2 * in_pages_of_512(pass.tokens * head * size);
  }
  held.others = in_pages_of_512(8 * pass.tokens);
  if (arguments.contains("window")) {
    held.others += in_pages_of_512(pass.tokens * (pass.past + pass.tokens));
  }
  return held;
}

}  // namespace

TEST_CASE("a prompt's pass peaks as transformers' does, to the byte, beside what callers hold") {
  for (const json& row : reference_cases()) {
    if (!row["prefill_chunk"].is_null() || row["arguments"].contains("window")) continue;
    CAPTURE(case_name(row));
    const ServingPasses passes = passes_of(row);
    const HeldByCallers held = held_by_callers(row, passes.prefill);
    // Where nothing is left over from layer to layer, ours peaks in the first, with its tables.
    const bool in_first_layer = row["cache"] == "static" && row["model"] != "gpt2";
    const std::int64_t named =
        held.hidden_states + held.others - held.last_output + (in_first_layer ? 0 : held.tables);
    CHECK(row["prefill"]["rounded_512"].get<std::int64_t>() - peak_of_pass(passes.prefill) ==
          named);
  }
}

TEST_CASE("no pass is further from transformers than what its callers hold") {
  for (const json& row : reference_cases()) {
    CAPTURE(case_name(row));
    const ServingPasses passes = passes_of(row);
    const auto check = [&](const ServingPass& pass, const char* name) {
      const HeldByCallers held = held_by_callers(row, pass);
      const std::int64_t missing =
          row[name]["rounded_512"].get<std::int64_t>() - peak_of_pass(pass);
      CAPTURE(name);
      CHECK(missing >= -held.last_output);
      CHECK(missing <= held.hidden_states + held.tables + held.others);
    };
    check(passes.prefill, "prefill");
    check(passes.decode, "decode");
  }
}

}  // namespace stowage
