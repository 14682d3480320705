#include "planner/assemble/fit_schedule.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "estimator/base/live_sum.hpp"
#include "planner/assemble/lane_schedule.hpp"

namespace stowage {
namespace {

constexpr std::int32_t few_steps = 1'000, many_steps = 3'000;
constexpr double progress = 0.8;    // of the least excess so far: less is taken off as it is
constexpr int most_doublings = 10;  // of what is taken off, where there is none

/// The memory for copies by live sums, before there are offsets.
CopyRoom room_by_sums(const PlacedStep& placed, GpuBudget budget) {
  const auto at = [](std::int32_t index) { return static_cast<std::size_t>(index); };
  CopyRoom room;
  room.limit = budget.bytes;
  for (const Item& item : placed.problem.items) {
    room.item_bytes.push_back(round_up(item.bytes, arena_alignment));
  }
  LiveSum sum(placed.steps());
  for (const GpuStay& stay : placed.moves.stays) {
    sum.add(stay.steps, room.item_bytes[at(stay.item)]);
  }
  room.live = std::move(sum).by_step();
  for (std::int32_t t = 0; t < placed.steps(); ++t) {
    if (!placed.on_gpu(t)) continue;
    room.live[at(t)] += round_up(placed.workspace(t), arena_alignment);
    for (const StorageId id : placed.temporaries(t)) {
      room.live[at(t)] += round_up(placed.step.bytes(id), arena_alignment);
    }
  }
  return room;
}

CopySchedule scheduled(const PlacedStep& placed, CopyRoom room) {
  return schedule_lanes(placed.problem, placed.placement, placed.moves, placed.node_seconds,
                        std::move(room));
}

void charge(WorkBudget* work, std::int64_t units) {
  if (work != nullptr) work->spend(units);
}

/// A round takes from a millisecond for a hundred steps to a tenth of a second for ten thousand.
int rounds_for(std::int32_t steps) { return steps < few_steps ? 12 : steps < many_steps ? 8 : 5; }

/// How many packings with effort are tried, and only where the excess is at most one of so many
/// parts of the budget. A packing takes from milliseconds for a hundred blocks to a second for ten
/// thousand.
struct SearchEffort {
  int most = 0;
  std::int64_t lacking = 1;
};
SearchEffort searches_for(std::size_t blocks) {
  if (blocks < 500) return {6, 1};
  return blocks < 5'000 ? SearchEffort{2, 16} : SearchEffort{1, 100};
}

/// The 64ths of the budget that copies in flight may fill, where they cannot fill all of it.
std::span<const std::int64_t> narrower_for(std::int32_t steps) {
  static constexpr std::int64_t shares[] = {63, 62, 61, 60, 58, 56};
  return std::span(shares).first(steps < few_steps ? 6 : steps < many_steps ? 4 : 2);
}

class ScheduleFitting {
 public:
  ScheduleFitting(const PlacedStep& placed, const AssemblyOptions& options)
      : placed_(placed), options_(options), room_(room_by_sums(placed, options.budget)) {}

  ScheduleOutcome run() && {
    CopySchedule widest = schedule(room_);
    if (!options_.budget.is_limited()) return pack_without_limit(std::move(widest));
    const double least = placed_.step_seconds(widest);
    if (least >= options_.longest_step) return {std::nullopt, unlimited_arena};
    const ArenaClaims kept = kept_claims(placed_);
    if (const auto arena = pack_kept(kept)) return {std::nullopt, *arena};
    take(schedule(room_by_places(kept, kept_)), kept_);
    if (options_.budget.fits(kept_.peak) && options_.widens) {
      widen(std::move(widest), least);
      use_free_places(kept);
    }
    const Bytes arena = best_.packing.peak;
    return {std::move(best_), arena};
  }

 private:
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  [[nodiscard]] CopySchedule schedule(CopyRoom room) const {
    charge(options_.work, work_of_schedule(placed_));
    return scheduled(placed_, std::move(room));
  }

  void take(CopySchedule schedule, ArenaPacking packing) {
    best_seconds_ = placed_.step_seconds(schedule);
    best_.claims = claim_gpu(placed_, schedule.stays);
    best_.schedule = std::move(schedule);
    best_.packing = std::move(packing);
    best_.packing.lower_bound = live_peak(best_.claims, placed_.steps());
  }

  ScheduleOutcome pack_without_limit(CopySchedule schedule) {
    ArenaPacking packing = pack(claim_gpu(placed_, schedule.stays), options_.arena_effort);
    take(std::move(schedule), std::move(packing));
    const Bytes arena = best_.packing.peak;
    return {std::move(best_), arena};
  }

  [[nodiscard]] ArenaPacking pack(const ArenaClaims& claims, int effort,
                                  std::span<const Bytes> near = {}) const {
    ArenaPacking packing =
        pack_arena(claims.requests,
                   {.alignment = arena_alignment,
                    .effort = effort,
                    .target_peak = options_.budget.is_limited() ? options_.budget.bytes : Bytes(),
                    .similar_offsets = near});
    charge(options_.work, work_of_packing(packing));
    return packing;
  }

  /// Packs what the placement keeps, without copies in flight. If a bound says that it cannot fit,
  /// it is packed without effort, or not at all if the caller needs a fit. Returns the arena where
  /// the caller then discards the plan.
  std::optional<Bytes> pack_kept(const ArenaClaims& kept) {
    if (!options_.kept.empty()) {
      kept_.offsets.assign(options_.kept.begin(), options_.kept.end());
      for (std::size_t i = 0; i < kept.requests.size(); ++i) {
        const Bytes size = round_up(kept.requests[i].bytes, arena_alignment);
        kept_.peak = std::max(kept_.peak, kept_.offsets[i] + size);
      }
      return std::nullopt;
    }
    const Bytes least = bound_arena(kept.requests, options_.budget.bytes).least_peak;
    const bool may_fit = options_.budget.fits(least);
    if (!may_fit && options_.must_fit) return least;
    kept_ = pack(kept, may_fit ? options_.last_effort : 0);
    if (!options_.budget.fits(kept_.peak) && options_.must_fit) return kept_.peak;
    return std::nullopt;
  }

  /// Starts with all the memory that the live sums leave, then a little less of it at every step,
  /// and then takes off what reaches beyond the budget.
  void widen(CopySchedule schedule, double seconds) {
    Fitting now = packed(std::move(schedule), seconds);
    if (now.is_done) return;
    for (const std::int64_t share : narrower_for(placed_.steps())) {
      CopyRoom room = room_;
      room.limit = options_.budget.sixty_fourths(share).bytes;
      CopySchedule narrower = this->schedule(std::move(room));
      const double longer = placed_.step_seconds(narrower);
      if (packed(std::move(narrower), longer).is_done) break;
    }
    CopyRoom room = room_;
    Bytes least_excess = unlimited_arena;
    int doublings = 0;
    for (int round = 1; round < rounds_for(placed_.steps()); ++round) {
      const Bytes excess = options_.budget.excess(now.packing.peak);
      const bool is_progress = static_cast<double>(excess.count()) <
                               progress * static_cast<double>(least_excess.count());
      if (!is_progress) doublings = std::min(doublings + 1, most_doublings);
      least_excess = std::min(least_excess, excess);
      reduce_room(now.claims, now.packing, std::int64_t{1} << doublings, room);
      schedule = this->schedule(room);
      seconds = placed_.step_seconds(schedule);
      now = packed(std::move(schedule), seconds);
      if (now.is_done) return;
    }
  }

  struct Fitting {
    bool is_done = false;  ///< it is taken, or the step is no shorter than the best
    ArenaClaims claims = {};
    ArenaPacking packing = {};
  };
  Fitting packed(CopySchedule schedule, double seconds) {
    if (seconds >= best_seconds_) return {.is_done = true};
    Fitting result{.claims = claim_gpu(placed_, schedule.stays)};
    ArenaPacking& packing = result.packing;
    packing = pack(result.claims, 0, kept_.offsets);
    const GpuBudget& budget = options_.budget;
    const SearchEffort effort = searches_for(result.claims.requests.size());
    if (!budget.fits(packing.peak) && searches_ < effort.most &&
        budget.excess(packing.peak) <= Bytes(budget.bytes.count() / effort.lacking)) {
      ++searches_;
      ArenaPacking better = pack(result.claims, options_.arena_effort, kept_.offsets);
      if (better.peak < packing.peak) packing = std::move(better);
    }
    if (!budget.fits(packing.peak)) return result;
    take(std::move(schedule), std::move(packing));
    return {.is_done = true};
  }

  /// Takes off `times` the bytes beyond the budget, at most all of the memory.
  void reduce_room(const ArenaClaims& claims, const ArenaPacking& packing, std::int64_t times,
                   CopyRoom& room) const {
    const auto beyond = excess_by_step(claims, packing, options_.budget, placed_.steps());
    const Bytes budget = options_.budget.bytes;
    for (std::size_t t = 0; t < beyond.size(); ++t) {
      const bool is_all = beyond[t].count() > budget.count() / times;
      room.live[t] = is_all ? budget : std::min(room.live[t] + times * beyond[t], budget);
    }
  }

  /// Lets copies in flight use the holes of the packing as well.
  void use_free_places(const ArenaClaims& kept) {
    CopySchedule found = schedule(room_by_places(kept, best_.packing));
    if (placed_.step_seconds(found) < best_seconds_) take(std::move(found), best_.packing);
  }

  /// The memory for copies at the offsets of `packing`. `kept`: the requests without copies in
  /// flight; `packing` may be of more.
  [[nodiscard]] CopyRoom room_by_places(const ArenaClaims& kept,
                                        const ArenaPacking& packing) const {
    CopyRoom room;
    room.item_bytes = room_.item_bytes;
    for (std::size_t i = 0; i < kept.requests.size(); ++i) {
      const Bytes begin = packing.offsets[i];
      const ArenaSpan span{begin, begin + round_up(kept.requests[i].bytes, arena_alignment)};
      for (const StepRange& live : kept.requests[i].live) room.taken.push_back({span, live});
    }
    // The requests of the stays come first, in their order (claim_gpu).
    for (std::size_t i = 0; i < placed_.moves.stays.size(); ++i) {
      room.stay_offset.push_back(packing.offsets[at(kept.residences[i].first)]);
    }
    return room;
  }

  const PlacedStep& placed_;
  const AssemblyOptions& options_;
  CopyRoom room_;  // as the sums leave it
  ArenaPacking kept_;
  FittedSchedule best_;
  double best_seconds_ = std::numeric_limits<double>::infinity();
  int searches_ = 0;
};

}  // namespace

ScheduleOutcome fit_schedule(const PlacedStep& placed, const AssemblyOptions& options) {
  return ScheduleFitting(placed, options).run();
}

std::int64_t work_of_schedule(const PlacedStep& placed) {
  std::size_t touches = 0;
  for (const Item& item : placed.problem.items) touches += item.touches.size();
  return 5 + static_cast<std::int64_t>(placed.problem.operations.size() + touches) / 5;
}

std::int64_t work_of_packing(const ArenaPacking& packing) {
  constexpr std::int64_t comparisons_a_unit = 800;
  const auto blocks = static_cast<std::int64_t>(packing.offsets.size());
  return blocks + packing.work / comparisons_a_unit;
}

CopySchedule widest_schedule(const PlacedStep& placed, GpuBudget budget) {
  return scheduled(placed, room_by_sums(placed, budget));
}

double widest_step_seconds(const PlacedStep& placed, GpuBudget budget) {
  return placed.step_seconds(widest_schedule(placed, budget));
}

}  // namespace stowage
