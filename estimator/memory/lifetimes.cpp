#include "estimator/memory/lifetimes.hpp"

#include <cassert>
#include <limits>
#include <numeric>
#include <utility>

namespace stowage {
namespace {

// Hands out a use's intervals, at most two, in ascending order of their first step.
template <typename Take>
void for_each_interval(const StorageUse& use, std::int32_t index, std::int32_t steps, Take take) {
  if (use.whole_step) {
    if (steps > 0) take(Interval{index, 0, steps, use.bytes});
    return;
  }
  if (use.touches.empty()) return;
  const std::int32_t first = use.touches.front(), last = use.touches.back();
  assert(first >= 0 && last < steps);
  assert(0 <= use.previous_until && use.previous_until <= steps);
  if (use.previous_until > 0) take(Interval{index, 0, use.previous_until, use.bytes});
  take(Interval{index, use.from_start ? 0 : first, use.to_end ? steps : last + 1, use.bytes});
}

}  // namespace

LiveSum::LiveSum(std::int32_t steps) : change_(static_cast<std::size_t>(steps) + 1) {}

void LiveSum::add(const Interval& interval) {
  assert(0 <= interval.begin && interval.begin <= interval.end);
  assert(static_cast<std::size_t>(interval.end) < change_.size());
  change_[static_cast<std::size_t>(interval.begin)] += interval.bytes;
  change_[static_cast<std::size_t>(interval.end)] -= interval.bytes;
}

void LiveSum::add(const StorageUse& use) {
  const auto steps = static_cast<std::int32_t>(change_.size()) - 1;
  for_each_interval(use, 0, steps, [&](const Interval& interval) { add(interval); });
}

// No partial sum leaves the range between minus the live bytes before a step and the live bytes at
// it, so only a true overflow throws.
std::vector<Bytes> LiveSum::by_step() && {
  change_.pop_back();
  Bytes sum;
  for (Bytes& entry : change_) entry = sum += entry;
  return std::move(change_);
}

std::vector<Interval> lifetimes(std::span<const StorageUse> uses, std::int32_t steps) {
  // Counted by their first step, then put in place in the order of the uses.
  std::vector<std::size_t> place(static_cast<std::size_t>(steps) + 1);
  const auto for_each = [&](auto take) {
    for (std::size_t i = 0; i < uses.size(); ++i) {
      for_each_interval(uses[i], static_cast<std::int32_t>(i), steps, take);
    }
  };
  for_each(
      [&](const Interval& interval) { ++place[static_cast<std::size_t>(interval.begin) + 1]; });
  std::partial_sum(place.begin(), place.end(), place.begin());
  std::vector<Interval> intervals(place.back());
  for_each([&](const Interval& interval) {
    intervals[place[static_cast<std::size_t>(interval.begin)]++] = interval;
  });
  return intervals;
}

std::vector<Bytes> live_bytes(std::span<const Interval> intervals, std::int32_t steps) {
  LiveSum sum(steps);
  for (const Interval& interval : intervals) sum.add(interval);
  return std::move(sum).by_step();
}

std::vector<Bytes> live_bytes(std::span<const StorageUse> uses, std::int32_t steps) {
  LiveSum sum(steps);
  for (const StorageUse& use : uses) sum.add(use);
  return std::move(sum).by_step();
}

int copies_at(const StorageUse& use, std::int32_t step) {
  int copies = 0;
  for_each_interval(use, 0, std::numeric_limits<std::int32_t>::max(),
                    [&](const Interval& interval) {
                      if (interval.begin <= step && step < interval.end) ++copies;
                    });
  return copies;
}

Peak peak(std::span<const Bytes> live) {
  Peak result;
  for (std::size_t step = 0; step < live.size(); ++step) {
    if (live[step] > result.bytes) result = {live[step], static_cast<std::int32_t>(step)};
  }
  return result;
}

}  // namespace stowage
