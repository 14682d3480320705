#include "planner/assemble/idle_gaps.hpp"

#include <cstddef>
#include <cstdint>

#include "planner/problem/versions.hpp"

namespace stowage {

std::vector<bool> without_idle_gaps(const Item& item, const std::vector<Device>& device,
                                    std::vector<bool> resident) {
  const std::size_t touches = item.touches.size();
  const auto on_cpu = [&](std::size_t touch) {
    return device[static_cast<std::size_t>(item.touches[touch].step)] == Device::cpu;
  };
  const auto leads_on = [&](std::size_t touch) {  // from the gap before it to the one after it
    const std::int32_t before = gap_before(item, static_cast<std::int32_t>(touch));
    return before >= 0 && resident[static_cast<std::size_t>(before)] && touch < resident.size() &&
           resident[touch];
  };
  // Dropping a gap can make its neighbours idle: repeated in both directions until no gap is idle.
  for (bool changed = true; changed;) {
    changed = false;
    const auto drop_if_idle = [&](std::size_t gap) {
      if (!resident[gap] || gap_pin(item, static_cast<std::int32_t>(gap)) == GapPin::resident) {
        return;
      }
      const std::size_t next = (gap + 1) % touches;
      const bool idle = (on_cpu(gap) && !leads_on(gap)) || (on_cpu(next) && !leads_on(next));
      if (!idle) return;
      resident[gap] = false;
      changed = true;
    };
    for (std::size_t gap = 0; gap < resident.size(); ++gap) drop_if_idle(gap);
    for (std::size_t gap = resident.size(); gap-- > 0;) drop_if_idle(gap);
  }
  return resident;
}

}  // namespace stowage
