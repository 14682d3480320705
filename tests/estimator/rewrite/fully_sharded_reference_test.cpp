// Steps of one GPU among several under FSDP2, against traces of PyTorch's own fully_shard
// (tests/reference/fsdp.py): the first step's peak, and those of each phase of the second.
#include <doctest/doctest.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "estimator/adapt/adapt.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/step/choose_step.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;

namespace {

std::string text(const json& row, const char* key) { return row[key].get<std::string>(); }

ModelGraph sharded_model(const json& row) {
  ModelOptions options{.precision = row["policy"].empty() ? parse_precision(text(row, "precision"))
                                                          : Precision::mixed_bf16};
  if (row["seq"].is_number()) options.seq = row["seq"].get<std::int64_t>();
  for (const auto& [name, value] : row["arguments"].items()) {
    options.arguments[name] = value.dump();
  }
  if (row["checkpoint"].get<bool>()) options.fine_tuning.checkpoint = "all";
  if (!text(row, "lora").empty()) options.fine_tuning.lora = text(row, "lora");
  const auto source = find_model(text(row, "model"), testing::source_path("/configs/models"));
  REQUIRE(source.has_value());
  auto model = load_adapted(source->source, overridden(source->options, options));
  REQUIRE(model.has_value());
  return *std::move(model);
}

DataParallel parallel_of(const json& row) {
  DataParallel parallel{.gpus = row["gpus"], .fsdp = {.on = true}};
  FullyShard& fsdp = parallel.fsdp;
  fsdp.by_block = row["wrap"] == "blocks";
  if (row["reshard"].is_boolean()) {
    fsdp.reshards_after_forward = row["reshard"];
  } else {
    fsdp.reshards_among = row["reshard"];
  }
  fsdp.forward_prefetch = row["forward_prefetch"];
  fsdp.backward_prefetch = row["backward_prefetch"];
  if (!row["policy"].empty() && row["policy"][1].is_string()) {
    fsdp.reduce_type = row["policy"][1] == "bf16" ? DataType::bfloat16 : DataType::float32;
  }
  if (row["offload"].get<bool>()) parallel.offload = Offload::all;
  return parallel;
}

std::shared_ptr<const StepGraph> sharded_step(const json& row) {
  const ModelGraph model = sharded_model(row);
  const std::string optimizer = text(row, "optimizer");
  auto chosen =
      choose_step(model, {.optimizer = optimizer == "sgd-momentum" ? "momentum" : optimizer,
                          .parallel = parallel_of(row),
                          .compute_capability = 8.0});
  REQUIRE(chosen.has_value());
  chosen->lowering.micro_batches = row["micro_batches"];
  return testing::lowered(model, chosen->lowering);
}

/// The most that is live in forward (with the loss), in backward and in the update.
std::array<std::int64_t, 3> phase_peaks(const SizedStep& step, StepNumber number) {
  const auto live =
      live_bytes(step, {.step = number, .with_workspaces = false}, storage_touches(*step.graph));
  std::array<std::int64_t, 3> peaks{};
  for (std::size_t i = 0; i < live.size(); ++i) {
    const Phase phase = step.graph->nodes[i].phase;
    const std::size_t at = phase == Phase::update ? 2 : phase == Phase::backward ? 1 : 0;
    peaks[at] = std::max(peaks[at], live[i].count());
  }
  return peaks;
}

/// What callers hold in forward while the layers run, as in steps of whole replicas
/// (tests/estimator/reference/live_differences.cpp), by the beginning of a case's name.
struct HeldInForward {
  std::string_view beginning;
  std::int64_t bytes;
};

// transformers pads the labels by one and shifts them, which is a copy of several samples' labels.
constexpr std::int64_t labels = std::int64_t{8} * 129,
                       labels_of_4 = std::int64_t{4} * 8 * (129 + 128);
constexpr std::int64_t activation = std::int64_t{4} * 128 * 768;  // of GPT-2: a module's argument
constexpr std::int64_t position_ids = std::int64_t{8} * 128;      // of Llama
constexpr std::array held_in_forward{
    HeldInForward{"gpt2-b1-g4-lora", labels + activation},
    HeldInForward{"gpt2-b1-g4-amp-bf16", labels + activation},
    // The peak is within a block, whose arguments are variables of three modules.
    HeldInForward{"gpt2-b1-g4-forward-2-backward-2", 3 * activation},
    HeldInForward{"gpt2-b1", labels}, HeldInForward{"gpt2-b4", labels_of_4},
    // The peak is the root's gather on one GPU, on several that of the first block.
    HeldInForward{"llama-3.2-1b-2layers-b1-g1", 0},
    HeldInForward{"llama-3.2-1b-2layers-b1", position_ids},
    HeldInForward{"llama-3.2-1b-2layers-b4", position_ids + labels_of_4}};

std::int64_t held_by_callers(const std::string& name) {
  for (const HeldInForward& held : held_in_forward) {
    if (name.starts_with(held.beginning)) return held.bytes;
  }
  return 0;
}

}  // namespace

TEST_CASE("FSDP's steps take what fully_shard's take, phase by phase, to the byte") {
  std::ifstream file(testing::source_path("/tests/reference/fsdp.json"));
  const json cases = json::parse(file)["cases"];
  CHECK(cases.size() >= 29);
  for (const json& row : cases) {
    const std::string name = text(row, "name");
    CAPTURE(name);
    const auto step = size_storages(sharded_step(row), row["batch"].get<std::int64_t>());
    REQUIRE(step.has_value());
    const json& trace = row["trace"];
    const std::int64_t divided_loss = row["micro_batches"].get<int>() > 1 ? 4 : 0;
    const auto steady = phase_peaks(*step, StepNumber::steady);
    CHECK(steady[0] + held_by_callers(name) + divided_loss ==
          trace["step2_phases"]["forward"]["peak"].get<std::int64_t>());
    CHECK(steady[1] + divided_loss ==
          trace["step2_phases"]["backward"]["peak"].get<std::int64_t>());
    if (row["offload"].get<bool>()) continue;  // the update is the CPU's
    CHECK(steady[2] + divided_loss ==
          trace["step2_phases"]["optimizer"]["peak"].get<std::int64_t>());
  }
}

}  // namespace stowage
