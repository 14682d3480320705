#include "planner/assemble/lower_limits.hpp"

#include <algorithm>
#include <utility>

namespace stowage {
namespace {

constexpr std::size_t most_stretches = 3;  // lowered one at a time
constexpr std::int64_t much = 50;          // of so many parts of the budget one or more are missing
constexpr std::size_t same_stretch = 4;    // steps between two that belong together

/// A limit below the memory of the placement, so that the same placement is not found again.
Bytes lowered(Bytes limit, Bytes memory, Bytes less) {
  return std::max(Bytes(), std::min(limit, memory) - round_up(less, arena_alignment));
}

std::vector<StepLimits> limits_against_conflict(const StepLimits& limits, const ArenaBound& bound,
                                                GpuBudget budget) {
  std::vector<StepLimits> ways;
  for (const std::vector<Bytes>& held : bound.excess) {
    StepLimits way = limits;
    for (std::size_t t = 0; t < held.size(); ++t) {
      if (held[t] > Bytes()) way[t] = std::min(way[t], budget.left_beside(held[t]));
    }
    if (way != limits) ways.push_back(std::move(way));
  }
  return ways;
}

/// Steps that follow each other closely.
using Stretch = std::vector<std::size_t>;

/// Stretches of the steps that have blocks beyond the budget and are too full to give up the
/// excess; the fullest stretches first.
std::vector<Stretch> full_stretches(const Overflow& overflow, GpuBudget budget) {
  const Bytes room = budget.bytes - budget.excess(overflow.arena);
  std::vector<Stretch> stretches;
  for (std::size_t t = 0; t < overflow.beyond.size(); ++t) {
    if (overflow.beyond[t] == Bytes() || overflow.memory[t] <= room) continue;
    if (stretches.empty() || t - stretches.back().back() > same_stretch) stretches.emplace_back();
    stretches.back().push_back(t);
  }
  const auto fullest = [&](const Stretch& stretch) {
    Bytes most;
    for (const std::size_t t : stretch) most = std::max(most, overflow.memory[t]);
    return most;
  };
  std::ranges::stable_sort(stretches, std::greater<>(), fullest);
  return stretches;
}

/// The bytes that the limit leaves at the fullest step with blocks beyond the budget, if they are
/// few: limits lowered by less would change nothing. Else 0.
Bytes unused_at_fullest(const StepLimits& limits, const Overflow& overflow, GpuBudget budget) {
  const Bytes little(budget.bytes.count() / 256);
  Bytes unused = little;
  for (std::size_t t = 0; t < limits.size(); ++t) {
    if (overflow.beyond[t] == Bytes()) continue;
    unused = std::min(unused, std::max(Bytes(), limits[t] - overflow.memory[t]));
  }
  return unused < little ? unused : Bytes();
}

}  // namespace

std::vector<StepLimits> tightened_limits(const StepLimits& limits, const Overflow& overflow,
                                         GpuBudget budget) {
  std::vector<StepLimits> ways = limits_against_conflict(limits, overflow.bound, budget);
  if (overflow.beyond.empty()) return ways;
  const Bytes unused = unused_at_fullest(limits, overflow, budget);
  const auto by_part = [&](std::int64_t part) {
    StepLimits way = limits;
    for (std::size_t t = 0; t < way.size(); ++t) {
      if (overflow.beyond[t] == Bytes()) continue;
      const Bytes less(overflow.beyond[t].count() / part);
      way[t] = lowered(way[t] - unused, way[t] - unused, less);
    }
    return way;
  };
  ways.push_back(by_part(1));
  std::vector<Stretch> stretches = full_stretches(overflow, budget);
  const bool has_several = stretches.size() > 1;
  if (stretches.size() > most_stretches) stretches.resize(most_stretches);
  for (std::size_t i = 0; has_several && i < stretches.size(); ++i) {
    StepLimits way = limits;
    for (const std::size_t t : stretches[i]) {
      way[t] = lowered(way[t], overflow.memory[t], budget.excess(overflow.arena));
    }
    ways.push_back(std::move(way));
  }
  if (budget.excess(overflow.arena) > Bytes(budget.bytes.count() / much)) {
    for (const std::int64_t part : {8, 4}) ways.push_back(by_part(part));
  }
  ways.push_back(by_part(2));
  return ways;
}

StepLimits lowered_everywhere(const StepLimits& limits, Bytes excess, GpuBudget budget) {
  const Bytes given = budget.bytes - *std::ranges::min_element(limits);
  const Bytes less = std::max({excess, budget.sixty_fourths(1).bytes, given + excess});
  return StepLimits(limits.size(), budget.bytes - less);
}

StepLimits halfway(const StepLimits& a, const StepLimits& b) {
  StepLimits limits;
  for (std::size_t t = 0; t < a.size(); ++t) limits.push_back(Bytes((a[t] + b[t]).count() / 2));
  return limits;
}

}  // namespace stowage
