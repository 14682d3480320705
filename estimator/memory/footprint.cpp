#include "estimator/memory/footprint.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <utility>

namespace stowage {

namespace {

/// Largest first, those of one size as they stand.
std::vector<FootprintRow> by_size(const std::vector<FootprintRow>& rows) {
  std::map<Bytes, std::size_t, std::greater<>> place;  // of the next row of that size
  for (const FootprintRow& row : rows) ++place[row.bytes];
  std::size_t before = 0;
  for (auto& [bytes, next] : place) before += std::exchange(next, before);
  std::vector<FootprintRow> result(rows.size());
  for (const FootprintRow& row : rows) result[place[row.bytes]++] = row;
  return result;
}

}  // namespace

Footprint peak_footprint(const SizedStep& step, const MemoryRules& rules,
                         const std::vector<Touches>& touches) {
  Footprint footprint{.graph = step.graph, .buffers = rules.buffers};
  const std::vector<Bytes> live = live_bytes(step, rules, touches);
  if (live.empty()) return footprint;
  const Peak top = peak(live);
  footprint.total = top.bytes;
  footprint.step = top.step;
  std::vector<FootprintRow> rows;  // that are live then
  rows.reserve(step.graph->storages.size());
  for_each_entry(step, rules, touches, [&](const MemoryEntry& entry, const StorageUse& use) {
    for (int copies = copies_at(use, top.step); copies > 0; --copies) {
      rows.push_back({entry, use.bytes});
      footprint.by_class[static_cast<std::size_t>(entry.storage_class)] += use.bytes;
    }
  });
  footprint.rows = by_size(rows);
  return footprint;
}

std::string name_of(const Footprint& footprint, const FootprintRow& row) {
  const MemoryEntry& entry = row.entry;
  if (entry.storage.valid()) return footprint.graph->storage(entry.storage).name;
  if (entry.node.valid())
    return fmt::format("{} workspace", footprint.graph->node(entry.node).name);
  return footprint.buffers[static_cast<std::size_t>(entry.buffer)].name;
}

}  // namespace stowage
