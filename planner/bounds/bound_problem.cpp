#include "planner/bounds/bound_problem.hpp"

#include <algorithm>

namespace stowage {

std::int64_t BoundNode::least_scratch() const {
  const auto least = std::ranges::min_element(engines, {}, &BoundEngine::workspace);
  return least->workspace + temporaries;
}

std::ptrdiff_t BoundItem::before(std::size_t touch) const {
  if (touch > 0) return static_cast<std::ptrdiff_t>(touch) - 1;
  return goes_round ? std::ssize(touches) - 1 : -1;
}

std::size_t BoundProblem::size() const {
  std::size_t count = nodes.size();
  for (const BoundItem& item : items) count += item.touches.size();
  return count;
}

}  // namespace stowage
