#include "answers/sizing/value_search.hpp"

#include <algorithm>
#include <iterator>

#include "estimator/check/batch_search.hpp"

namespace stowage {

namespace {

constexpr std::int64_t most_searched = std::int64_t{1} << 24;

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

/// The runs of a search, each value once.
class ValueTrials {
 public:
  ValueTrials(const RunAt& run, std::optional<Bytes> margin, NeedsByValue& needs)
      : run_(run), margin_(margin), needs_(needs) {}

  Result<ValueRun> at(std::int64_t value) {
    const auto known = runs_.find(value);
    if (known != runs_.end()) return known->second;
    Result<ValueRun> run = run_(value);
    if (run) {
      runs_.emplace(value, *run);
      needs_.add(value, run->device_bytes);
    }
    return run;
  }
  Result<bool> fits(std::int64_t value) {
    return at(value).map([](const ValueRun& run) { return run.fits; });
  }
  Result<bool> keeps_margin(std::int64_t value) {
    return at(value).map([&](const ValueRun& run) {
      return run.calm && run.headroom >= margin_.value_or(run.usual_margin);
    });
  }

 private:
  const RunAt& run_;
  std::optional<Bytes> margin_;
  NeedsByValue& needs_;
  std::map<std::int64_t, ValueRun> runs_;
};

}  // namespace

ValueRun run_of_step(const SizedStep& step, const Card& card, const CheckSettings& settings) {
  return run_of(check(step, card, settings), card, settings);
}

ValueRun larger_run(const std::vector<ValueRun>& runs) {
  ValueRun largest = runs.front();
  for (const ValueRun& run : runs) largest = larger_of(largest, run);
  return largest;
}

ValueRun run_of_steps(const SizedSteps& sized, const Card& card, const CheckSettings& settings) {
  std::vector<ValueRun> runs;
  runs.reserve(sized.steps.size());
  for (const SizedStep& step : sized.steps) runs.push_back(run_of_step(step, card, settings));
  return larger_run(runs);
}

std::int64_t NeedsByValue::value_at(Bytes room) const {
  constexpr std::int64_t unknown = 2;
  if (needs_.size() < 2) return unknown;
  auto above = std::ranges::find_if(needs_, [&](const auto& one) { return one.second > room; });
  if (above == needs_.begin()) return unknown;
  if (above == needs_.end()) above = std::prev(above);
  const auto below = std::prev(above);
  const double slope = static_cast<double>((above->second - below->second).count()) /
                       static_cast<double>(above->first - below->first);
  if (slope <= 0) return std::max(below->first, unknown);
  const double value = static_cast<double>(below->first) +
                       static_cast<double>((room - below->second).count()) / slope;
  return std::clamp(static_cast<std::int64_t>(std::min(value, 1e9)), unknown, most_searched);
}

Result<FoundValues> search_values(const RunAt& run, std::optional<Bytes> margin,
                                  NeedsByValue& needs) {
  ValueTrials trials(run, margin, needs);
  FoundValues found;
  const auto at_one = trials.at(1);
  if (!at_one) return tl::unexpected(at_one.error());
  auto largest = find_largest_value(
      most_searched, [&](std::int64_t value) { return trials.fits(value); },
      needs.value_at(at_one->available));
  if (!largest) return tl::unexpected(std::move(largest.error()));
  found.largest = *std::move(largest);
  if (found.largest.value == 0) {
    found.at_one = *at_one;
    return found;
  }
  const auto keep = [&](std::int64_t value, std::optional<ValueRun>& into) {
    if (auto known = trials.at(value)) into = *known;
  };
  keep(found.largest.value, found.at_largest);
  const Bytes room = at_one->available - margin.value_or(found.at_largest->usual_margin);
  auto recommended = find_largest_value(
      found.largest.value, [&](std::int64_t value) { return trials.keeps_margin(value); },
      needs.value_at(room));
  if (!recommended) return tl::unexpected(std::move(recommended.error()));
  found.recommended = *std::move(recommended);
  if (found.recommended.value > 0) keep(found.recommended.value, found.at_recommended);
  return found;
}

}  // namespace stowage
