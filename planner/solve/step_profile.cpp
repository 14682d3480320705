#include "planner/solve/step_profile.hpp"

#include <algorithm>
#include <limits>

namespace stowage {

namespace {

constexpr std::int64_t nothing = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t padding = nothing / 4;  // below any real value, with room to add to

}  // namespace

StepProfile::StepProfile(std::span<const std::int64_t> values) {
  while (width_ < std::ssize(values)) width_ *= 2;
  nodes_.resize(2 * static_cast<std::size_t>(width_));
  for (std::size_t i = 0; i < static_cast<std::size_t>(width_); ++i) {
    nodes_[static_cast<std::size_t>(width_) + i].largest = i < values.size() ? values[i] : padding;
  }
  for (auto node = static_cast<std::size_t>(width_) - 1; node >= 1; --node) {
    nodes_[node].largest = std::max(nodes_[2 * node].largest, nodes_[2 * node + 1].largest);
  }
}

void StepProfile::add(StepRange range, std::int64_t amount) {
  if (!range.empty()) add(1, 0, width_, range, amount);
}

void StepProfile::add(std::int32_t node, std::int32_t first, std::int32_t width, StepRange range,
                      std::int64_t amount) {
  if (range.end <= first || first + width <= range.begin) return;
  Node& here = nodes_[static_cast<std::size_t>(node)];
  if (range.begin <= first && first + width <= range.end) {
    here.largest += amount;
    here.added += amount;
    return;
  }
  const std::int32_t half = width / 2;
  add(2 * node, first, half, range, amount);
  add(2 * node + 1, first + half, half, range, amount);
  here.largest = here.added + std::max(nodes_[static_cast<std::size_t>(2 * node)].largest,
                                       nodes_[static_cast<std::size_t>(2 * node + 1)].largest);
}

std::int64_t StepProfile::largest(StepRange range) const {
  return range.empty() ? nothing : largest(1, 0, width_, range);
}

std::int64_t StepProfile::largest(std::int32_t node, std::int32_t first, std::int32_t width,
                                  StepRange range) const {
  if (range.end <= first || first + width <= range.begin) return nothing;
  const Node& here = nodes_[static_cast<std::size_t>(node)];
  if (range.begin <= first && first + width <= range.end) return here.largest;
  const std::int32_t half = width / 2;
  const std::int64_t below = std::max(largest(2 * node, first, half, range),
                                      largest(2 * node + 1, first + half, half, range));
  return below == nothing ? nothing : here.added + below;
}

std::int32_t StepProfile::largest_at() const {
  std::int32_t node = 1;
  while (node < width_) {
    node *= 2;
    if (nodes_[static_cast<std::size_t>(node + 1)].largest >
        nodes_[static_cast<std::size_t>(node)].largest) {
      ++node;
    }
  }
  return node - width_;
}

}  // namespace stowage
