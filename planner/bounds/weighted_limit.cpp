#include "planner/bounds/weighted_limit.hpp"

#include <algorithm>

namespace stowage {

namespace {

struct StepPlaces {
  std::vector<WeightedPlace> open;  // the weight: bytes
  std::int64_t room = 0;            // what is left beside what is there for certain
};

// Finds the touch or the gap of an item at the step, if any; an item has at most one place there.
void find_place(const BoundItem& item, std::size_t index, std::int32_t step,
                const FixedSides& sides, StepPlaces& found) {
  const auto next = std::ranges::lower_bound(item.touches, step, {}, &BoundTouch::step);
  WeightedPlace place{.item = static_cast<std::uint32_t>(index), .weight = item.bytes};
  Side side = Side::open;
  if (next != item.touches.end() && next->step == step) {
    place.index = static_cast<std::uint32_t>(next - item.touches.begin());
    side = sides.nodes[static_cast<std::size_t>(step)];
    if (side == Side::away && !next->writes) side = Side::open;  // a copy may be beside a reader
  } else {
    const std::ptrdiff_t gap = next == item.touches.begin()
                                   ? item.before(0)
                                   : std::ptrdiff_t{next - item.touches.begin()} - 1;
    if (gap < 0 || gap >= std::ssize(item.gaps)) return;
    place.index = static_cast<std::uint32_t>(gap);
    place.in_gap = true;
    side = sides.gaps[index][place.index];
  }
  if (side == Side::gpu) found.room -= item.bytes;
  if (side == Side::open && item.bytes > 0) found.open.push_back(place);
}

// floor(bytes / g) * r + min(bytes mod g, r), also of negative bytes.
std::int64_t rounded_weight(std::int64_t bytes, std::int64_t g, std::int64_t r) {
  std::int64_t whole = bytes / g;
  if (whole * g > bytes) --whole;
  return whole * r + std::min(bytes - whole * g, r);
}

}  // namespace

WeightedLimit rounded_by(const BoundProblem& problem, const FixedSides& sides,
                         const RoundedLimit& rounding) {
  const auto at = static_cast<std::size_t>(rounding.step);
  StepPlaces found;
  found.room = problem.limit;
  if (sides.nodes[at] == Side::gpu) found.room -= problem.nodes[at].least_scratch();
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    find_place(problem.items[i], i, rounding.step, sides, found);
  }
  const auto is_counted = [&](const WeightedPlace& place) {
    return rounding.counts(problem.items[place.item].number);
  };
  std::int64_t missing = -found.room;
  for (const WeightedPlace& place : found.open) {
    if (is_counted(place)) missing += place.weight;
  }
  if (missing <= 0) return {};
  const std::int64_t g = rounding.divisor;
  const std::int64_t times = (missing - 1) / g;  // missing = times * g + r, 0 < r <= g
  const std::int64_t r = missing - times * g;
  WeightedLimit result{{}, -(times + 1) * r};
  result.places.reserve(found.open.size());
  for (WeightedPlace place : found.open) {
    const bool counted = is_counted(place);
    place.weight =
        counted ? rounded_weight(place.weight, g, r) : -rounded_weight(-place.weight, g, r);
    if (counted) result.limit += place.weight;
    if (place.weight > 0) result.places.push_back(place);
  }
  if (result.limit < 0) return {};  // nothing fits at all, which propagate_limit() says
  result.places.shrink_to_fit();    // a checker keeps many, and counts what they have
  return result;
}

}  // namespace stowage
