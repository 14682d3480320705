#include "planner/problem/versions.hpp"

namespace stowage {

std::int32_t gap_count(const Item& item) {
  return static_cast<std::int32_t>(item.touches.size()) - (item.wraps ? 0 : 1);
}

std::int32_t gap_before(const Item& item, std::int32_t touch) {
  if (touch > 0) return touch - 1;
  return item.wraps ? static_cast<std::int32_t>(item.touches.size()) - 1 : -1;
}

GapSteps steps_inside(const Item& item, std::int32_t gap, std::int32_t steps) {
  const auto at = static_cast<std::size_t>(gap);
  const std::int32_t begin = item.touches[at].step + 1;
  if (at + 1 < item.touches.size()) return {{begin, item.touches[at + 1].step}, {}};
  return {{begin, steps}, {0, item.touches.front().step}};
}

std::vector<Version> versions_of(const Item& item) {
  std::vector<Version> versions(1);  // the one from before the step
  for (std::int32_t i = 0; i < std::ssize(item.touches); ++i) {
    const Touch& touch = item.touches[static_cast<std::size_t>(i)];
    if (touch.reads) versions.back().readers.push_back(i);
    if (touch.writes) versions.push_back({i, {}});
  }
  if (item.wraps && versions.size() > 1) {
    // Before the first write the item holds the last version, one step later.
    std::vector<std::int32_t>& last = versions.back().readers;
    last.insert(last.end(), versions.front().readers.begin(), versions.front().readers.end());
    versions.front().readers.clear();
  }
  if (versions.front().readers.empty()) versions.erase(versions.begin());
  return versions;
}

}  // namespace stowage
