// Inferences with attention written out against PyTorch's own storages
// (tests/reference/inference_eager.py): peaks of the second pass, in blocks of 512 bytes.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "estimator/memory/step_memory.hpp"
#include "tests/estimator/huggingface/described_config.hpp"
#include "tests/estimator/reference/reference_model.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;

namespace {

std::int64_t blocks_of(std::int64_t bytes) { return (bytes + 511) / 512 * 512; }

/// What variables of PyTorch's side hold besides: position ids of 8 bytes; of encoder-decoders the
/// encoder's last state in the last pass's output, and in BART's output layer, where its peak lies,
/// this pass's and the decoder's.
std::int64_t besides_in_inference(const json& row) {
  const std::string name = row.contains("model") ? row["model"] : row["folder"];
  if (name == "whisper-small") return std::int64_t{2} * 1'500 * 768 * 4 + blocks_of(12'000);
  if (name == "bart-base") return std::int64_t{3} * 2 * 512 * 768 * 4 + 2 * blocks_of(4'096);
  if (name == "small-opt") return blocks_of(1'024) + blocks_of(512);  // and the mask of them
  for (const std::string_view decoder :
       {"small-gpt2", "small-llama", "small-qwen3", "small-gemma2", "small-gpt-neox"}) {
    const bool at_output = row["op"] == "aten.mm";  // the ids are gone
    if (name == decoder && !at_output) return blocks_of(8 * row["seq"].get<std::int64_t>());
  }
  return 0;
}

ModelGraph inferred_model(const json& row) {
  if (row.contains("model")) {
    ModelOptions options;
    if (row["model"] != "swin_t") options.arguments["attention"] = "eager";
    return reference::our_model(row["model"], options);
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
  const json content = json::parse(file);
  for (const json& row : content["cases"]) {
    CAPTURE(row.dump());
    CHECK(row["rounded_512"].get<std::int64_t>() - inference_peak(row) ==
          besides_in_inference(row));
    ++compared;
  }
  CHECK(compared == 18);
}

}  // namespace stowage
