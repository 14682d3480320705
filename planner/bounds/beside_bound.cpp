#include "planner/bounds/beside_bound.hpp"

#include <algorithm>
#include <vector>

namespace stowage {

namespace {

// An item that may be away during the node: the bytes that it frees, one at least, and the weighted
// cost of its copies.
struct AwayItem {
  double bytes = 0;
  double cost = 0;
};

// The weighted seconds of a node, on the cheaper side where both are possible.
double least_seconds(const BoundNode& node, double gpu_weight, double cpu_weight) {
  const double cpu = cpu_weight * node.cpu_cost;
  if (node.side == Side::away) return cpu;
  const double gpu =
      gpu_weight * std::ranges::min_element(node.engines, {}, &BoundEngine::cost)->cost;
  return node.side == Side::gpu ? gpu : std::min(gpu, cpu);
}

// Whether the value before a touch was made on the GPU in this step.
bool is_made_on_gpu(const BoundProblem& problem, const BoundItem& item, std::size_t touch) {
  while (touch-- > 0) {
    if (!item.touches[touch].writes) continue;
    return problem.nodes[static_cast<std::size_t>(item.touches[touch].step)].side == Side::gpu;
  }
  return false;
}

}  // namespace

// 1. Sums the weighted seconds of all nodes.
// 2. For each item decides whether it is on the GPU during the node: it is if the node touches it
// or
//    its gap is kept; it may be away if its gap is open between two nodes on the GPU.
// 3. Adds the cost of the cheapest items, by cost for a byte, until what is left fits.
double beside_bound(const BoundProblem& problem, std::int32_t node, double downloads,
                    double uploads, double cpu) {
  const auto at = static_cast<std::size_t>(node);
  double seconds = 0;
  for (std::size_t t = 0; t < problem.nodes.size(); ++t) {
    const double share = t < at ? 1 - downloads : t > at ? 1 - uploads : 1;
    seconds += least_seconds(problem.nodes[t], (1 - cpu) * share, cpu);
  }
  const auto on_gpu = [&](const BoundTouch& touch) {
    return problem.nodes[static_cast<std::size_t>(touch.step)].side == Side::gpu;
  };
  double excess = static_cast<double>(problem.nodes[at].least_scratch() - problem.limit);
  std::vector<AwayItem> away;
  for (const BoundItem& item : problem.items) {
    const auto next = std::ranges::lower_bound(item.touches, node, {}, &BoundTouch::step);
    const auto bytes = static_cast<double>(item.bytes);
    if (next != item.touches.end() && next->step == node) {
      excess += bytes;
      continue;
    }
    const auto after = static_cast<std::size_t>(next - item.touches.begin());
    const bool over_the_end = after == 0 || after == item.touches.size();
    if (over_the_end && !item.goes_round) continue;
    const std::size_t gap = (after == 0 ? item.touches.size() : after) - 1;
    const BoundTouch& from = item.touches[gap];
    const BoundTouch& to = item.touches[item.after(gap)];
    const bool kept = item.gaps[gap] == Side::gpu;
    if (!kept && (item.gaps[gap] == Side::away || !to.reads || !on_gpu(from) || !on_gpu(to))) {
      continue;
    }
    excess += bytes;
    if (kept || item.bytes <= 0) continue;
    const double down = is_made_on_gpu(problem, item, after) ? item.download : 0;
    const double up = after < item.touches.size() ? item.upload : 0;
    away.push_back({bytes, downloads * down + uploads * up});
  }
  // Stable, so that the sum has one order where items are equal.
  std::ranges::stable_sort(away, {}, [](const AwayItem& item) { return item.cost / item.bytes; });
  for (const AwayItem& item : away) {
    if (excess <= 0) break;
    seconds += (1 - cpu) * std::min(1.0, excess / item.bytes) * item.cost;
    excess -= item.bytes;
  }
  return seconds;
}

}  // namespace stowage
