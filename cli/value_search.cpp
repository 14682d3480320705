#include "cli/value_search.hpp"

#include <algorithm>

#include "estimator/check/batch_search.hpp"

namespace stowage {

namespace {

constexpr std::int64_t most_searched = std::int64_t{1} << 24;

}  // namespace

ValueRun run_of(const CheckReport& report, const Card& card, const CheckSettings& settings) {
  return {.fits = report.fits,
          .calm = report.fits && report.run.process().releases == 0 && report.run.settles(),
          .device_bytes = report.device_bytes,
          .headroom = report.headroom,
          .available = report.available_bytes,
          .usual_margin = usual_margin(*report.footprint.graph, card, settings)};
}

ValueRun larger_of(const ValueRun& a, const ValueRun& b) {
  ValueRun larger = a.device_bytes > b.device_bytes ? a : b;
  larger.fits = a.fits && b.fits;
  larger.calm = a.calm && b.calm;
  larger.usual_margin = std::max(a.usual_margin, b.usual_margin);
  return larger;
}

std::int64_t ValueTrials::estimate(std::int64_t value, bool with_margin) {
  const Result<ValueRun> near = at(value), half = at(std::max<std::int64_t>(value / 2, 1));
  if (!near || !half || value < 2) return value;
  const Bytes grown = near->device_bytes - half->device_bytes;
  if (grown <= Bytes()) return value * 2;
  const Bytes margin = with_margin ? margin_.value_or(near->usual_margin) : Bytes();
  const auto room = static_cast<double>((near->headroom - margin).count());
  const auto slope = static_cast<double>(grown.count()) / static_cast<double>(value - value / 2);
  return value + static_cast<std::int64_t>(std::clamp(room / slope, 0.0, 1e15));
}

Result<FoundValue> search_largest(ValueTrials& trials) {
  FoundValue found;
  auto largest = find_largest_value(
      most_searched, [&](std::int64_t value) { return trials.fits(value); },
      [&](std::int64_t value) { return trials.estimate(value, false); });
  if (!largest) return tl::unexpected(std::move(largest.error()));
  found.largest = *std::move(largest);
  const auto keep = [&](std::int64_t value, std::optional<ValueRun>& into) {
    if (auto run = trials.at(value)) into = *run;
  };
  if (found.largest.value == 0) {
    keep(1, found.at_one);
    return found;
  }
  keep(found.largest.value, found.at_largest);
  auto recommended = find_largest_value(
      found.largest.value, [&](std::int64_t value) { return trials.keeps_margin(value); },
      [&](std::int64_t value) { return trials.estimate(value, true); });
  if (!recommended) return tl::unexpected(std::move(recommended.error()));
  found.recommended = *std::move(recommended);
  if (found.recommended.value > 0) keep(found.recommended.value, found.at_recommended);
  return found;
}

Sought sought(LargestOf of) {
  switch (of) {
    case LargestOf::users:
      return {"users", "number of users"};
    case LargestOf::context_length:
      return {"context-length", "context length"};
    case LargestOf::seq:
      return {"seq", "sequence length"};
  }
  return {};
}

}  // namespace stowage
