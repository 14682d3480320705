#include "estimator/check/batch_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <utility>

#include "estimator/runtime/runtime_buffers.hpp"

namespace stowage {

namespace {

// Questions to the source of workspaces (batch_trials.hpp).
constexpr std::int64_t search_budget = 2000;
constexpr std::int64_t advice_budget = 300;
constexpr std::int64_t kept_for_safe = 1200;         // of it, from the search for the largest
constexpr std::int64_t trials_of_recommending = 12;  // about
constexpr std::int64_t most_chances = 128;           // above the bracket
constexpr std::int64_t most_below = 128;   // below the largest, each tried where they are no more
constexpr std::int64_t most_samples = 64;  // of more than those
constexpr std::int64_t fewest_points = 5;  // of the curve, whatever is left
constexpr std::int64_t largest_rest = 32;  // the largest calm batch may leave a 32nd of the memory
constexpr std::int64_t looks_beyond = 16;  // batches that are tried above it where it leaves more
constexpr std::int64_t roundest = 8;       // multiples of it are the roundest batches

struct Bracket {
  std::int64_t passes = 0;  ///< the largest found that does; 0: none
  std::int64_t fails = 0;   ///< passes + 1 where the search came to its end
};

/// From `guess` outwards within [1, fails) in strides that double, then by bisection, until
/// `stop()`. `passes(batch)` may depend on chance: what is found passes, and the next one fails.
template <typename Passes, typename Stop>
Result<Bracket> search_outwards(std::int64_t guess, std::int64_t fails, Passes passes, Stop stop) {
  Bracket bracket{.passes = 0, .fails = fails};
  if (fails <= 1) return bracket;
  std::int64_t batch = std::clamp<std::int64_t>(guess, 1, fails - 1);
  std::int64_t stride = std::max<std::int64_t>(1, batch / 64);
  bool above = false, below = false;  // whether a batch has passed, and failed
  while (bracket.fails - bracket.passes > 1 && !stop()) {
    const Result<bool> passed = passes(batch);
    if (!passed) return tl::unexpected(passed.error());
    (*passed ? bracket.passes : bracket.fails) = batch;
    (*passed ? above : below) = true;
    if (above && below) {
      batch = bracket.passes + (bracket.fails - bracket.passes) / 2;
    } else if (*passed) {
      batch = std::min(bracket.passes + stride, bracket.fails - 1);
    } else {
      batch = std::max(bracket.fails - stride, bracket.passes + 1);
    }
    stride *= 2;
  }
  return bracket;
}

/// Larger batches than the bracket's may complete by chance: those that were not tried, from the
/// ceiling down, until no more than `reserved` of the budget is left (`all_tried` is false then).
Result<std::int64_t> largest_by_chance(BatchTrials& trials, const Bracket& bracket,
                                       std::int64_t reserved, bool& all_tried) {
  std::int64_t tried = 0;
  for (std::int64_t batch = trials.ceiling(); batch > bracket.passes; --batch) {
    const bool affordable = trials.left() > reserved && tried < most_chances;
    if (!trials.is_tried(batch) && !affordable) {
      all_tried = false;
      break;
    }
    ++tried;
    const Result<bool> completes = trials.completes(batch);
    if (!completes) return tl::unexpected(completes.error());
    if (*completes) return batch;
  }
  return bracket.passes;
}

/// Which batches below the largest are tried before all are said to complete.
struct SafeSearch {
  std::int64_t ample = 0;   ///< batches up to it are taken for completing, untried
  std::int64_t end = 0;     ///< the largest batch that the search can name
  std::int64_t stride = 0;  ///< from one batch that is tried to the next; 0: none is tried
  bool all_tried = true;
};

SafeSearch safe_search(BatchTrials& trials, std::int64_t largest) {
  const std::int64_t end = std::min(largest, trials.smallest_failing().value_or(largest));
  SafeSearch search{.end = end == largest ? largest : end - 1};
  for (std::int64_t not_ample = end; not_ample - search.ample > 1;) {
    const std::int64_t middle = search.ample + (not_ample - search.ample) / 2;
    (trials.has_ample_room(middle) ? search.ample : not_ample) = middle;
  }
  const std::int64_t between = end - search.ample - 1;
  const std::int64_t affordable =
      std::clamp(trials.left() / trials.price() - trials_of_recommending, std::int64_t{0},
                 between <= most_below ? most_below : most_samples);
  search.all_tried = affordable >= between;
  if (affordable == 0) return search;
  // A power of two, and its multiples: searches on several cards then try the same batches, and can
  // share what they find.
  search.stride = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(between / affordable + 1)));
  return search;
}

/// The largest batch up to `most` below which every batch that is tried completes. The batch that
/// it names has been run and completes.
Result<std::int64_t> find_largest_safe(BatchTrials& trials, const SafeSearch& search,
                                       std::int64_t most) {
  const std::int64_t stride = search.stride;
  std::int64_t safe = search.ample;
  bool unbroken = true;
  for (std::int64_t batch = stride > 0 ? safe / stride * stride + stride : most;
       batch < most && unbroken; batch += stride) {
    const Result<bool> completes = trials.completes(batch);
    if (!completes) return tl::unexpected(completes.error());
    unbroken = *completes;
    if (unbroken) safe = batch;
  }
  if (unbroken) safe = most;
  while (safe > 0) {  // an untried batch has to show that it completes
    const Result<bool> completes = trials.completes(safe);
    if (!completes) return tl::unexpected(completes.error());
    if (*completes) break;
    safe /= 2;
  }
  return safe;
}

struct Recommendation {
  std::int64_t batch = 0;  ///< 0: none of them runs without giving the cache back
  bool keeps_margin = true;
};

/// The largest batch found, up to `most`, that never gives the cache back and leaves `spare`; 0:
/// none. From one batch to the next the memory taken may jump up, and further on fall again: where
/// the batch before a jump leaves much more than `spare`, some larger ones are tried too.
Result<std::int64_t> largest_calm(BatchTrials& trials, std::int64_t most, Bytes spare) {
  const auto calm = [&](std::int64_t batch) { return trials.completes_calmly(batch, spare); };
  const auto from = [&](std::int64_t guess, std::int64_t fails) {
    return search_outwards(guess, fails, calm, [] { return false; }).map([](const Bracket& found) {
      return found.passes;
    });
  };
  Result<std::int64_t> found = from(trials.likely_calm(most, spare), most + 1);
  if (!found || *found == 0 || *found == most) return found;
  const Bytes much = Bytes(trials.limit().count() / std::min(largest_rest, *found / 2 + 1));
  const Result<bool> leaves_much = trials.completes_calmly(*found, spare + much);
  if (!leaves_much) return tl::unexpected(leaves_much.error());
  if (!*leaves_much) return found;
  const std::int64_t stride = std::max<std::int64_t>(1, *found / 32);
  const std::int64_t unit = std::min<std::int64_t>(
      roundest, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(stride))));
  std::int64_t fails = most + 1;
  for (std::int64_t i = std::min(looks_beyond, trials.left() / trials.price()); i > 0; --i) {
    const std::int64_t batch = (*found + i * stride) / unit * unit;
    if (batch > most) continue;
    const Result<bool> passes = calm(batch);
    if (!passes) return tl::unexpected(passes.error());
    if (*passes) return from(batch, fails);
    fails = batch;
  }
  return found;
}

/// Of the batches up to `most`.
Result<Recommendation> recommend(BatchTrials& trials, std::int64_t most, Bytes margin) {
  const auto rounded_calm = [&](Bytes spare) -> Result<std::int64_t> {
    Result<std::int64_t> largest = largest_calm(trials, most, spare);
    if (!largest) return largest;
    for (const std::int64_t rounded : rounded_batches(*largest)) {
      const Result<bool> passes = trials.completes_calmly(rounded, spare);
      if (!passes) return tl::unexpected(passes.error());
      if (*passes) return rounded;
    }
    return largest;
  };
  const Result<std::int64_t> spared = rounded_calm(margin);
  if (!spared) return tl::unexpected(spared.error());
  if (*spared > 0) return Recommendation{*spared, true};
  const Result<std::int64_t> calm = rounded_calm(Bytes());
  if (!calm) return tl::unexpected(calm.error());
  return Recommendation{*calm, false};
}

/// Finds `recommended` and then `largest_safe`. If not `in_full`, no batch above `recommended` is
/// tried.
Result<void> find_safe_sizes(BatchTrials& trials, bool in_full, BatchReport& report) {
  const SafeSearch search = safe_search(trials, report.largest);
  if (!search.all_tried) report.all_tried = false;
  if (search.end == 0) return {};
  Result<Recommendation> advice = recommend(trials, search.end, report.margin);
  if (!advice) return tl::unexpected(advice.error());
  const auto safe =
      find_largest_safe(trials, search, advice->batch > 0 ? advice->batch : search.end);
  if (!safe) return tl::unexpected(safe.error());
  report.largest_safe = *safe;
  if (*safe < advice->batch) {
    advice = recommend(trials, *safe, report.margin);
    if (!advice) return tl::unexpected(advice.error());
  } else if (in_full && *safe < search.end) {
    const auto larger = find_largest_safe(trials, search, search.end);
    if (!larger) return tl::unexpected(larger.error());
    report.largest_safe = std::max(*safe, *larger);
  }
  report.recommended = advice->batch > 0 ? advice->batch : *safe;
  report.keeps_margin = advice->keeps_margin;
  return {};
}

/// The largest micro-batch up to `most` that divides each GPU's share of the global one and
/// completes; nullopt: not even one sample.
Result<std::optional<Accumulation>> accumulate(std::int64_t most, const BatchSettings& settings,
                                               std::int64_t gpus, const Card& card,
                                               WorkspaceSource& source) {
  assert(settings.accumulating != nullptr);
  const std::int64_t share = micro_batch_of(*settings.global_batch, gpus).value();
  for (std::int64_t micro = std::min(share, most); micro > 0; --micro) {
    if (share % micro != 0) continue;
    const Accumulation found{*settings.global_batch, gpus, micro, share / micro};
    if (found.steps == 1) return found;
    const Result<SizedStep> sized = size_step(settings.accumulating, micro, source);
    if (!sized) return tl::unexpected(sized.error());
    if (completes(*sized, card, settings.check)) return found;
  }
  return std::optional<Accumulation>();
}

/// Powers of 2, or of 4, 16 ... where the budget allows no more, and the largest.
Result<std::vector<CurvePoint>> curve(BatchTrials& trials, const CheckReport& at_largest,
                                      std::int64_t largest) {
  std::int64_t doublings = 0;
  while ((std::int64_t{2} << doublings) < largest) ++doublings;
  const std::int64_t affordable = std::max(fewest_points, trials.left() / trials.price());
  const std::int64_t stride = doublings / affordable + 1;
  std::vector<CurvePoint> points;
  for (std::int64_t i = 0; (std::int64_t{1} << i) < largest; i += stride) {
    const std::int64_t batch = std::int64_t{1} << i;
    const Result<CheckReport> at = trials.check_at(batch);
    if (!at) return tl::unexpected(at.error());
    points.push_back({batch, at->device_bytes});
  }
  points.push_back({largest, at_largest.device_bytes});
  return points;
}

/// Adds the reports: at_one where not even one sample fits, else the other two and the curve.
Result<void> add_reports(BatchTrials& trials, BatchReport& report) {
  const auto keep = [&](std::int64_t batch, std::optional<CheckReport>& into) -> Result<void> {
    Result<CheckReport> at = trials.check_at(batch);
    if (!at) return tl::unexpected(at.error());
    into = *std::move(at);
    return {};
  };
  if (report.largest == 0) return keep(1, report.at_one);
  if (report.recommended > 0) {
    if (auto kept = keep(report.recommended, report.at_recommended); !kept) return kept;
  }
  if (auto kept = keep(report.largest, report.at_largest); !kept) return kept;
  auto points = curve(trials, *report.at_largest, report.largest);
  if (!points) return tl::unexpected(points.error());
  report.curve = *std::move(points);
  return {};
}

/// largest, largest_safe and recommended.
Result<void> find_sizes(BatchTrials& trials, bool in_full, BatchReport& report) {
  report.ceiling = trials.ceiling();
  report.unlimited = report.ceiling == largest_searched_batch;
  const auto bracket = search_outwards(
      trials.likely_largest(Bytes()), trials.ceiling() + 1,
      [&](std::int64_t batch) { return trials.completes(batch); }, [] { return false; });
  if (!bracket) return tl::unexpected(bracket.error());
  const auto largest = largest_by_chance(trials, *bracket, kept_for_safe, report.all_tried);
  if (!largest) return tl::unexpected(largest.error());
  report.largest = *largest;
  return find_safe_sizes(trials, in_full, report);
}

}  // namespace

Bytes usual_margin(const StepGraph& graph, const Card& card, const CheckSettings& settings) {
  const Bytes share = Bytes(card.cuda_total.count() / 50);
  const Bytes uncertain = uncertainty_outside_allocator(graph, card, settings);
  return round_up(std::max(share, uncertain), 1_MiB);
}

std::vector<std::int64_t> rounded_batches(std::int64_t batch) {
  std::vector<std::int64_t> rounded;
  for (const std::int64_t multiple : {roundest, roundest / 2, roundest / 4}) {
    const std::int64_t below = batch / multiple * multiple;
    if (below > 0 && (batch - below) * 16 <= batch) rounded.push_back(below);
  }
  return rounded;
}

Result<BatchReport> find_batch(const std::shared_ptr<const StepGraph>& graph, const Card& card,
                               const BatchSettings& settings, WorkspaceSource& source) {
  const std::int64_t gpus = graph->settings.parallel.gpus;
  if (settings.global_batch && !micro_batch_of(*settings.global_batch, gpus)) {
    const std::int64_t samples = settings.global_batch->samples;
    return failure(
        fmt::format("a global batch of {} cannot be shared equally by {} GPUs", samples, gpus),
        fmt::format("the nearest below is {}", samples / gpus * gpus));
  }
  BatchReport report;
  report.margin = settings.margin.value_or(usual_margin(*graph, card, settings.check));
  std::shared_ptr<SharedReplays> runs = settings.replays;
  if (runs == nullptr && SharedReplays::serves(*graph, settings.check)) {
    runs = std::make_shared<SharedReplays>(graph, runtime_buffers(*graph, card, settings.check),
                                           settings.check.allocator);
  }
  BatchTrials trials(graph, card, settings.check, source, search_budget, std::move(runs));
  const auto found = find_sizes(trials, settings.in_full, report);
  if (!found) return tl::unexpected(found.error());
  const auto added = settings.in_full ? add_reports(trials, report) : Result<void>();
  if (!added) return tl::unexpected(added.error());
  if (settings.global_batch && report.recommended > 0) {
    auto accumulation = accumulate(report.recommended, settings, gpus, card, source);
    if (!accumulation) return tl::unexpected(accumulation.error());
    report.accumulation = *accumulation;
  }
  return report;
}

Result<LargestBatch> look_for_largest(std::shared_ptr<const StepGraph> graph, const Card& card,
                                      const CheckSettings& settings, WorkspaceSource& source) {
  BatchTrials trials(std::move(graph), card, settings, source, advice_budget);
  const auto bracket = search_outwards(
      trials.likely_largest(Bytes()), trials.ceiling() + 1,
      [&](std::int64_t batch) { return trials.completes(batch); }, [&] { return trials.spent(); });
  if (!bracket) return tl::unexpected(bracket.error());
  LargestBatch result{.batch = bracket->passes,
                      .is_proven = bracket->fails - bracket->passes <= 1,
                      .unlimited = bracket->passes == largest_searched_batch};
  if (!result.is_proven) return result;
  bool all_tried = true;
  const auto largest = largest_by_chance(trials, *bracket, 0, all_tried);
  if (!largest) return tl::unexpected(largest.error());
  result.batch = *largest;
  return result;
}

}  // namespace stowage
