#include "planner/solve/step_profile.hpp"

#include <algorithm>
#include <limits>

namespace stowage {

namespace {

constexpr std::int64_t nothing = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t padding = nothing / 4;  // below any real value, with room to add to

std::size_t leaf(std::int32_t step) { return static_cast<std::size_t>(step) + 1; }

}  // namespace

StepProfile::StepProfile(std::span<const std::int64_t> values) {
  while (width_ < values.size() + 2) width_ *= 2;
  nodes_.resize(2 * width_, {padding, 0});
  for (std::size_t i = 0; i < values.size(); ++i) nodes_[width_ + i + 1].largest = values[i];
  for (std::size_t node = width_ - 1; node >= 1; --node) recount(node);
}

void StepProfile::recount(std::size_t node) {
  nodes_[node].largest =
      nodes_[node].added + std::max(nodes_[2 * node].largest, nodes_[2 * node + 1].largest);
}

void StepProfile::recount_above(std::size_t node) {
  while (node > 1) {
    node /= 2;
    const std::int64_t before = nodes_[node].largest;
    recount(node);
    if (nodes_[node].largest == before) return;
  }
}

void StepProfile::add(StepRange range, std::int64_t amount) {
  if (range.empty() || amount == 0) return;
  if (range.length() == 1) {
    const std::size_t node = width_ + leaf(range.begin);
    nodes_[node].largest += amount;
    return recount_above(node);
  }
  // Walks up from the leaves on either side of the range until they are siblings.
  std::size_t before = width_ + leaf(range.begin) - 1, after = width_ + leaf(range.end);
  while ((before ^ after) != 1) {
    if (before % 2 == 0) raise(before + 1, amount);
    if (after % 2 == 1) raise(after - 1, amount);
    before /= 2;
    after /= 2;
    recount(before);
    recount(after);
  }
  recount_above(before);
}

std::int64_t StepProfile::largest(StepRange range) const {
  if (range.empty()) return nothing;
  std::size_t before = width_ + leaf(range.begin) - 1, after = width_ + leaf(range.end);
  std::int64_t on_left = padding, on_right = padding;
  while ((before ^ after) != 1) {
    if (before % 2 == 0) on_left = std::max(on_left, nodes_[before + 1].largest);
    if (after % 2 == 1) on_right = std::max(on_right, nodes_[after - 1].largest);
    before /= 2;
    after /= 2;
    on_left += nodes_[before].added;
    on_right += nodes_[after].added;
  }
  std::int64_t result = std::max(on_left, on_right);
  for (std::size_t node = before / 2; node >= 1; node /= 2) result += nodes_[node].added;
  return result;
}

std::int32_t StepProfile::largest_at() const {
  std::size_t node = 1;
  while (node < width_) {
    node *= 2;
    if (nodes_[node + 1].largest > nodes_[node].largest) ++node;
  }
  return static_cast<std::int32_t>(node - width_) - 1;
}

}  // namespace stowage
