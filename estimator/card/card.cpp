#include "estimator/card/card.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "estimator/base/cure.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/card/card_file.hpp"
#include "estimator/card/card_name.hpp"
#include "estimator/card/card_rules.hpp"

namespace stowage {
namespace {

namespace fs = std::filesystem;

Result<Card> read_card_at(const fs::path& path, FileTypes types = FileTypes::regular) {
  auto source = read_source(path.string(), FileKind::card, types);
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

// "mi300x", "mi250", "radeonrx7900xtx", "rx7900xtx".
bool is_of_amd(std::string_view squeezed) {
  const auto is_number_from = [&](std::size_t at) {
    return squeezed.size() > at + 1 && squeezed[at] >= '1' && squeezed[at] <= '9';
  };
  return squeezed.starts_with("amd") || squeezed.starts_with("radeon") ||
         (squeezed.starts_with("mi") && is_number_from(2)) ||
         (squeezed.starts_with("rx") && is_number_from(2));
}

tl::unexpected<Diagnostics> unknown_card(const std::string& name, const std::string& squeezed,
                                         const std::vector<std::string>& stems) {
  std::vector<std::string> names;
  for (const std::string& stem : stems) names.push_back(squeeze_card_name(stem));
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::string hint = hint_of(Cure::described_card);
  if (is_of_amd(squeezed)) {
    return failure(fmt::format("'{}' is a GPU of AMD's, which are not modelled: ROCm's context and "
                               "MIOpen's workspaces are others than CUDA's and cuDNN's",
                               name),
                   hint_of(Cure::tensors_alone));
  }
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

// The smallest and largest observed totals, if they differ from the totals used by more than two
// percent.
std::optional<std::pair<Bytes, Bytes>> observed_range(const Card& card) {
  const auto differs = [](const std::optional<Bytes>& seen, Bytes taken) {
    return seen && 50 * std::abs(seen->count() - taken.count()) > taken.count();
  };
  std::pair<Bytes, Bytes> range{card.cuda_total, card.cuda_total};
  bool tells = false;
  for (const ObservedTotal& total : card.observed_totals) {
    tells = tells || differs(total.cuda, card.cuda_total) || differs(total.nvml, card.nvml_total);
    for (const auto& seen : {total.cuda, total.nvml}) {
      if (seen) range = {std::min(range.first, *seen), std::max(range.second, *seen)};
    }
  }
  return tells ? std::optional(range) : std::nullopt;
}

}  // namespace

std::vector<std::string> remarks_on(const Card& card) {
  std::vector<std::string> remarks;
  if (const auto range = observed_range(card)) {
    const auto mebibytes = [](Bytes bytes) {
      return static_cast<double>(bytes.count()) / (1 << 20);
    };
    remarks.push_back(
        fmt::format("{}: totals from {:.0f} to {:.0f} MiB were seen; {:.0f} MiB is taken ({}); {}",
                    card.name, mebibytes(range->first), mebibytes(range->second),
                    mebibytes(card.cuda_total), card.total_source, in_words(Cure::own_total)));
  }
  const auto is_by_rule = [&](std::string_view key) {
    return std::ranges::find(card.by_rule, key) != card.by_rule.end();
  };
  constexpr std::array<std::string_view, 4> telling{"cuda_total", "sm_count", "memory_bandwidth",
                                                    "fp32"};
  if (std::ranges::any_of(telling, is_by_rule)) {
    remarks.push_back(fmt::format("{}: by rule and not measured (docs/gpus.md): {}", card.name,
                                  fmt::join(card.by_rule, ", ")));
  }
  return remarks;
}

Result<FoundCard> find_card(const std::string& name, const std::string& directory) {
  if (is_file(name)) {
    return read_card_at(name, FileTypes::any).map([](Card card) {
      return FoundCard{std::move(card), ""};
    });
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
  card.total_source = "given";
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
  card.cudnn_device_json = cudnn_device_by_rule(card);
  return card;
}

}  // namespace stowage
