#include "estimator/memory/lifetimes.hpp"

#include <algorithm>
#include <cassert>

namespace stowage {
namespace {

bool by_begin_then_use(const Interval& a, const Interval& b) {
  return a.begin != b.begin ? a.begin < b.begin : a.use < b.use;
}

}  // namespace

std::vector<Interval> lifetimes(std::span<const StorageUse> uses, std::int32_t steps) {
  std::vector<Interval> intervals;
  intervals.reserve(uses.size());
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const StorageUse& use = uses[i];
    const auto index = static_cast<std::int32_t>(i);
    if (use.whole_step) {
      if (steps > 0) intervals.push_back({index, 0, steps, use.bytes});
      continue;
    }
    if (use.touches.empty()) continue;
    const std::int32_t first = use.touches.front(), last = use.touches.back();
    assert(first >= 0 && last < steps);
    assert(0 <= use.previous_until && use.previous_until <= steps);
    if (use.previous_until > 0) intervals.push_back({index, 0, use.previous_until, use.bytes});
    intervals.push_back(
        {index, use.from_start ? 0 : first, use.to_end ? steps : last + 1, use.bytes});
  }
  std::stable_sort(intervals.begin(), intervals.end(), by_begin_then_use);
  return intervals;
}

std::vector<Bytes> live_bytes(std::span<const Interval> intervals, std::int32_t steps) {
  // change[t]: what is live at t, less what is live at t - 1. No partial sum leaves the range
  // between minus the live bytes before t and the live bytes at t, so only a true overflow throws.
  std::vector<Bytes> change(static_cast<std::size_t>(steps) + 1);
  for (const Interval& interval : intervals) {
    assert(0 <= interval.begin && interval.begin <= interval.end && interval.end <= steps);
    change[static_cast<std::size_t>(interval.begin)] += interval.bytes;
    change[static_cast<std::size_t>(interval.end)] -= interval.bytes;
  }
  change.pop_back();
  Bytes sum;
  for (Bytes& entry : change) entry = sum += entry;
  return change;
}

Peak peak(std::span<const Bytes> live) {
  Peak result;
  for (std::size_t step = 0; step < live.size(); ++step) {
    if (live[step] > result.bytes) result = {live[step], static_cast<std::int32_t>(step)};
  }
  return result;
}

}  // namespace stowage
