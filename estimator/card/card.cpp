#include "estimator/card/card.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "estimator/base/read_source.hpp"
#include "estimator/card/card_file.hpp"
#include "estimator/card/card_name.hpp"

namespace stowage {
namespace {

namespace fs = std::filesystem;

Result<Card> read_card_at(const fs::path& path) {
  auto source = read_source(path.string(), FileKind::card);
  if (!source) return tl::unexpected(std::move(source.error()));
  return read_card(*source);
}

// Sorted, so that the first of several equals is the same everywhere.
Result<std::vector<std::string>> stems_in(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> stems;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".yaml") stems.push_back(entry->path().stem().string());
  }
  if (error) {
    return failure(fmt::format("cannot list the GPUs in '{}': {}", directory, error.message()));
  }
  std::ranges::sort(stems);
  return stems;
}

tl::unexpected<Diagnostics> unknown_card(const std::string& name, const std::string& squeezed,
                                         const std::vector<std::string>& stems) {
  std::vector<std::string> names;
  for (const std::string& stem : stems) names.push_back(squeeze_card_name(stem));
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::string hint =
      "'stowage gpus' lists the known ones; a card file or --gpu-memory takes others";
  if (const auto near = closest(squeezed, views)) {
    const auto at = std::ranges::find(views, *near) - views.begin();
    hint = fmt::format("did you mean '{}'?", stems[static_cast<std::size_t>(at)]);
  }
  return failure(fmt::format("unknown GPU '{}'", name), hint);
}

bool is_file(const std::string& name) {
  std::error_code error;
  return name.ends_with(".yaml") || name.ends_with(".yml") || fs::is_regular_file(name, error);
}

// What cuDNN needs to be told of a multiprocessor; CUDA programming guide, compute capabilities.
struct Multiprocessor {
  double compute_capability;
  int shared_optin, reserved_shared, blocks, threads;
};
constexpr std::array<Multiprocessor, 7> multiprocessors = {{
    {7.5, 65536, 0, 16, 1024},
    {8.0, 166912, 1024, 32, 2048},
    {8.6, 101376, 1024, 16, 1536},
    {8.9, 101376, 1024, 24, 1536},
    {9.0, 232448, 1024, 32, 2048},
    {10.0, 232448, 1024, 32, 2048},
    {12.0, 101376, 1024, 24, 1536},
}};

std::string generic_cudnn_device(const Card& card) {
  const auto unit = std::ranges::find(multiprocessors, card.compute_capability,
                                      &Multiprocessor::compute_capability);
  if (unit == multiprocessors.end()) return "";
  return fmt::format(
      R"({{"cudaDeviceId": 0, "deviceName": "{}", "deviceVer": {}, "driverVer": 13000, )"
      R"("isTccDriver": 0, "l2CacheSize": 6291456, "maxBlockSize": [1024, 1024, 64], )"
      R"("maxCtasPerSM": {}, "maxGridSize": [2147483647, 65535, 65535], )"
      R"("maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152, )"
      R"("maxSharedMemoryPerBlockOptin": {}, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": {}, )"
      R"("memClockRateKHz": 9751000, "multiProcessorCount": {}, "pciDeviceId": 0, )"
      R"("regsPerBlock": 65536, "reservedSharedMemoryPerBlock": {}, "smClockRateKHz": 1695000, )"
      R"("supportCoopLaunch": 1, "totalGlobalMem": {}, "warpSize": 32}})",
      card.name, static_cast<int>(card.compute_capability * 100 + 0.5), unit->blocks,
      unit->shared_optin, unit->threads, card.sm_count, unit->reserved_shared,
      card.cuda_total.count());
}

}  // namespace

Result<FoundCard> find_card(const std::string& name, const std::string& directory) {
  if (is_file(name)) {
    return read_card_at(name).map([](Card card) { return FoundCard{std::move(card), ""}; });
  }
  const auto stems = stems_in(directory);
  if (!stems) return tl::unexpected(stems.error());
  const std::string squeezed = squeeze_card_name(name);
  std::vector<std::string> matches = matching_stems(squeezed, *stems);
  if (matches.empty()) return unknown_card(name, squeezed, *stems);
  std::ranges::stable_sort(matches, {}, gigabytes_in_stem);
  const std::string chosen = matches.front();
  std::string note;
  if (matches.size() > 1) {
    note = fmt::format("'{}' may be {}: took {}, the smallest", name, fmt::join(matches, ", "),
                       chosen);
  }
  return read_card_at(fs::path(directory) / (chosen + ".yaml")).map([&](Card card) {
    return FoundCard{std::move(card), note};
  });
}

Result<std::vector<Card>> all_cards(const std::string& directory) {
  const auto stems = stems_in(directory);
  if (!stems) return tl::unexpected(stems.error());
  std::vector<Card> cards;
  Diagnostics errors;
  for (const std::string& stem : *stems) {
    auto card = read_card_at(fs::path(directory) / (stem + ".yaml"));
    if (card) {
      cards.push_back(std::move(*card));
    } else {
      errors.insert(errors.end(), card.error().begin(), card.error().end());
    }
  }
  if (!errors.empty()) return tl::unexpected(errors);
  std::ranges::stable_sort(cards, {}, &Card::name);
  return cards;
}

Card generic_card(Bytes total, double compute_capability) {
  Card card;
  card.name = fmt::format("a generic {} card", format_bytes(total));
  card.architecture = "generic";
  card.compute_capability = compute_capability;
  card.sm_count = 82;
  card.nvml_total = total;
  card.cuda_total = total;
  card.total_source = "--gpu-memory";
  card.context = 256_MiB;
  card.context_source = "as measured on an RTX 3090";
  card.memory_bandwidth = 936e9;
  card.fp32_flops = 35.6e12;
  card.tf32_flops = 35.6e12;
  card.fp16_flops = 71.2e12;
  card.h2d_bandwidth = 25e9;
  card.d2h_bandwidth = 26e9;
  card.pageable_bandwidth = 8e9;
  card.pcie = "gen4 x16";
  card.rate_source = "an RTX 3090's";
  card.confidence = "low: no card was named";
  card.cudnn_device_json = generic_cudnn_device(card);
  return card;
}

}  // namespace stowage
