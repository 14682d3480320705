#include "estimator/memory/footprint.hpp"

#include <algorithm>

namespace stowage {

Footprint peak_footprint(const StepMemory& memory) {
  const std::vector<Interval> intervals = lifetimes(memory.uses, memory.steps);
  const std::vector<Bytes> live = live_bytes(intervals, memory.steps);
  Footprint footprint;
  if (live.empty()) return footprint;
  const Peak top = peak(live);
  footprint.total = top.bytes;
  footprint.step = top.step;
  for (const Interval& interval : intervals) {
    if (interval.begin > top.step || interval.end <= top.step) continue;
    const MemoryEntry& entry = memory.entries[static_cast<std::size_t>(interval.use)];
    footprint.by_class[static_cast<std::size_t>(entry.storage_class)] += interval.bytes;
    footprint.rows.push_back({entry.name, entry.storage_class, entry.op, interval.bytes});
  }
  std::stable_sort(footprint.rows.begin(), footprint.rows.end(),
                   [](const FootprintRow& a, const FootprintRow& b) {
                     return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
                   });
  return footprint;
}

}  // namespace stowage
