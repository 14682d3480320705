// Inferences with attention written out against PyTorch's own storages
// (tests/reference/inference_eager.py): peaks of the second pass, in blocks of 512 bytes.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "estimator/memory/step_memory.hpp"
#include "tests/estimator/huggingface/described_config.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;

namespace {

/// What PyTorch's side has besides, in bytes.
const std::map<std::string, std::int64_t> held_in_inference{};

ModelGraph inferred_model(const json& row) {
  if (row.contains("model")) {
    ModelOptions options;
    if (row["model"] != "swin_t") options.arguments["attention"] = "eager";
    return testing::shipped(row["model"], options);
  }
  const std::string folder = row["folder"];
  ImportOptions options{.values = {{"attention", "eager"}, {"transformers", "5.24"}}};
  if (!row["seq"].is_null()) options.seq = row["seq"].get<std::int64_t>();
  if (folder == "vit-base-in21k") options.values["head"] = "image-classification";
  if (folder == "bart-base") options.values["head"] = "conditional-generation";
  return testing::hugging_face_model(folder, options);
}

std::int64_t inference_peak(const json& row) {
  const auto graph = testing::lowered(
      inferred_model(row),
      {.kernels = KernelSet::pytorch, .mode = Mode::inference, .compute_capability = 8.0});
  const auto step = size_storages(graph, row["batch"]);
  REQUIRE(step.has_value());
  const auto live = live_bytes(*step, {.granularity = Bytes(512), .with_workspaces = false},
                               storage_touches(*graph));
  return std::ranges::max(live).count();
}

}  // namespace

TEST_CASE("an inference with attention written out peaks as PyTorch's does, to the byte") {
  std::ifstream file(testing::source_path("/tests/reference/inference_eager.json"));
  int compared = 0;
  for (const json& row : json::parse(file)["cases"]) {
    CAPTURE(row.dump());
    const std::string name = row.contains("model") ? row["model"] : row["folder"];
    const auto besides = held_in_inference.find(name);
    const std::int64_t held = besides == held_in_inference.end() ? 0 : besides->second;
    CHECK(row["rounded_512"].get<std::int64_t>() - inference_peak(row) == held);
    ++compared;
  }
  CHECK(compared == 18);
}

}  // namespace stowage
