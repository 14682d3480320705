#include "estimator/memory/lifetimes.hpp"

#include <cassert>
#include <limits>
#include <numeric>
#include <utility>

namespace stowage {
namespace {

// Hands out a use's lifetimes, at most two, in ascending order of their first step.
template <typename Take>
void for_each_lifetime(const StorageUse& use, std::int32_t index, std::int32_t steps, Take take) {
  if (use.whole_step) {
    if (steps > 0) take(Lifetime{index, {0, steps}, use.bytes});
    return;
  }
  if (use.touches.empty()) return;
  const std::int32_t first = use.touches.front(), last = use.touches.back();
  assert(first >= 0 && last < steps);
  assert(0 <= use.previous_until && use.previous_until <= steps);
  if (use.previous_until > 0) take(Lifetime{index, {0, use.previous_until}, use.bytes});
  take(Lifetime{index, {use.from_start ? 0 : first, use.to_end ? steps : last + 1}, use.bytes});
}

}  // namespace

void add_use(LiveSum& sum, const StorageUse& use) {
  for_each_lifetime(use, 0, sum.steps(),
                    [&](const Lifetime& lifetime) { sum.add(lifetime.steps, lifetime.bytes); });
}

std::vector<Lifetime> lifetimes(std::span<const StorageUse> uses, std::int32_t steps) {
  // Counted by their first step, then put in place in the order of the uses.
  std::vector<std::size_t> place(static_cast<std::size_t>(steps) + 1);
  const auto for_each = [&](auto take) {
    for (std::size_t i = 0; i < uses.size(); ++i) {
      for_each_lifetime(uses[i], static_cast<std::int32_t>(i), steps, take);
    }
  };
  for_each([&](const Lifetime& lifetime) {
    ++place[static_cast<std::size_t>(lifetime.steps.begin) + 1];
  });
  std::partial_sum(place.begin(), place.end(), place.begin());
  std::vector<Lifetime> ordered(place.back());
  for_each([&](const Lifetime& lifetime) {
    ordered[place[static_cast<std::size_t>(lifetime.steps.begin)]++] = lifetime;
  });
  return ordered;
}

std::vector<Bytes> live_bytes(std::span<const Lifetime> lifetimes, std::int32_t steps) {
  LiveSum sum(steps);
  for (const Lifetime& lifetime : lifetimes) sum.add(lifetime.steps, lifetime.bytes);
  return std::move(sum).by_step();
}

std::vector<Bytes> live_bytes(std::span<const StorageUse> uses, std::int32_t steps) {
  LiveSum sum(steps);
  for (const StorageUse& use : uses) add_use(sum, use);
  return std::move(sum).by_step();
}

int copies_at(const StorageUse& use, std::int32_t step) {
  int copies = 0;
  for_each_lifetime(use, 0, std::numeric_limits<std::int32_t>::max(),
                    [&](const Lifetime& lifetime) {
                      if (lifetime.steps.contains(step)) ++copies;
                    });
  return copies;
}

}  // namespace stowage
