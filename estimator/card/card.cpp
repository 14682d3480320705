#include "estimator/card/card.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "estimator/base/cure.hpp"
#include "estimator/card/card_rules.hpp"

namespace stowage {
namespace {

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
