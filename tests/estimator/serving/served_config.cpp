#include "tests/estimator/serving/served_config.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "estimator/memory/footprint.hpp"
#include "tests/estimator/huggingface/described_config.hpp"
#include "tests/support/described_model.hpp"

namespace stowage::testing {

Result<ServingPasses> passes_of_config(const nlohmann::json& row, const std::string& attention) {
  ServingSettings settings{.context_length = row["context_length"], .users = row["users"]};
  settings.cache = find_cache_kind(row["cache"].get<std::string>()).value();
  if (row.contains("prefill_chunk") && !row["prefill_chunk"].is_null()) {
    settings.prefill_chunk = row["prefill_chunk"];
  }
  if (row.contains("encoder_length")) settings.encoder_length = row["encoder_length"];
  const auto read = [&](std::int64_t positions) -> Result<ModelGraph> {
    const ImportOptions options{
        .seq = positions, .values = {{"attention", attention}}, .loss = "none"};
    auto imported = imported_text(row["config"].dump(), options);
    if (!imported) return tl::unexpected(imported.error());
    return load_model(imported->description,
                      {.seq = positions,
                       .arguments = options.values,
                       .precision = parse_precision(row["precision"].get<std::string>())});
  };
  return serving_passes(read, settings);
}

SizedStep sized_pass(const ServingPass& pass) {
  const auto graph =
      lowered(pass.model,
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

std::int64_t in_blocks_of_512(std::int64_t bytes) { return (bytes + 511) / 512 * 512; }

HeldByCallers held_by_callers(const nlohmann::json& row, const ServingPass& pass) {
  const nlohmann::json& arguments = row["arguments"];
  const std::int64_t size = row["precision"] == "fp32" ? 4 : 2;
  const std::int64_t vocabulary = arguments["vocab"];
  HeldByCallers held{.others = in_blocks_of_512(8 * pass.tokens),
                     .last_output = in_blocks_of_512(pass.batch * vocabulary * size)};
  if (arguments.contains("window")) {
    held.others += in_blocks_of_512(pass.tokens * (pass.past + pass.tokens));
    held.others += 512 * arguments["layers"].get<std::int64_t>();  // each layer's, as a tensor
  }
  return held;
}

}  // namespace stowage::testing
