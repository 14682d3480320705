#include "estimator/memory/footprint.hpp"

#include <algorithm>
#include <functional>

namespace stowage {

Footprint peak_footprint(const StepMemory& memory) {
  const std::vector<Bytes> live = live_bytes(memory.uses, memory.steps);
  Footprint footprint;
  if (live.empty()) return footprint;
  const Peak top = peak(live);
  footprint.total = top.bytes;
  footprint.step = top.step;
  std::vector<std::size_t> entries;  // that are live then
  for (std::size_t i = 0; i < memory.uses.size(); ++i) {
    for (int copies = copies_at(memory.uses[i], top.step); copies > 0; --copies) {
      entries.push_back(i);
    }
  }
  std::ranges::stable_sort(entries, std::greater(),
                           [&](std::size_t i) { return memory.uses[i].bytes; });
  footprint.rows.reserve(entries.size());
  for (const std::size_t i : entries) {
    const MemoryEntry& entry = memory.entries[i];
    const Bytes bytes = memory.uses[i].bytes;
    footprint.by_class[static_cast<std::size_t>(entry.storage_class)] += bytes;
    footprint.rows.push_back({name_of(memory, entry), entry.storage_class, entry.op, bytes});
  }
  return footprint;
}

}  // namespace stowage
