#include "estimator/runtime/step_events.hpp"

#include <cassert>

namespace stowage {

namespace {

using Kind = MemoryEvent::Kind;

// Hands out an entry's events, each with its node.
template <typename Take>
void for_each_event(const StorageUse& use, const StorageUse& next, std::int32_t entry,
                    std::int32_t nodes, Take take) {
  if (use.whole_step || use.touches.empty()) return;
  take(use.from_start ? 0 : use.touches.front(), MemoryEvent{Kind::allocate, entry});
  if (use.previous_until > 0) take(use.previous_until - 1, MemoryEvent{Kind::free_previous, entry});
  const bool found_there = next.whole_step || next.previous_until > 0;
  if (!found_there)
    take(use.to_end ? nodes - 1 : use.touches.back(), MemoryEvent{Kind::free, entry});
}

}  // namespace

StepEvents step_events(std::span<const StorageUse> uses, std::span<const StorageUse> next,
                       std::int32_t nodes) {
  assert(uses.size() == next.size());
  const auto node_count = static_cast<std::size_t>(nodes);
  // Two lists a node, allocations before frees, counted and then put in place in the order of the
  // entries.
  std::vector<std::int32_t> place(2 * node_count + 1);
  const auto list_of = [](std::int32_t node, Kind kind) {
    return 2 * static_cast<std::size_t>(node) + (kind == Kind::allocate ? 0 : 1);
  };
  const auto for_each = [&](auto take) {
    for (std::size_t i = 0; i < uses.size(); ++i) {
      for_each_event(uses[i], next[i], static_cast<std::int32_t>(i), nodes, take);
    }
  };
  for_each([&](std::int32_t node, MemoryEvent event) { ++place[list_of(node, event.kind) + 1]; });
  for (std::size_t i = 1; i < place.size(); ++i) place[i] += place[i - 1];

  StepEvents result;
  result.events.resize(static_cast<std::size_t>(place.back()));
  result.first_event.reserve(node_count + 1);
  result.first_free.reserve(node_count);
  for (std::size_t node = 0; node < node_count; ++node) {
    result.first_event.push_back(place[2 * node]);
    result.first_free.push_back(place[2 * node + 1]);
  }
  result.first_event.push_back(place.back());
  for_each([&](std::int32_t node, MemoryEvent event) {
    result.events[static_cast<std::size_t>(place[list_of(node, event.kind)]++)] = event;
  });
  return result;
}

}  // namespace stowage
