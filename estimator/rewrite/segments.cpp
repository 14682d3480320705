#include "estimator/rewrite/segments.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>

#include "estimator/rewrite/node_order.hpp"

namespace stowage {

Result<StepGraph> with_segments(StepGraph step, const std::vector<std::int32_t>& borders) {
  const int parts = step.settings.micro_batches;
  const MicroBatch& part = step.micro_batch;
  if (step.settings.mode != Mode::inference) return failure("only an inference has segments");
  if (parts < 2 || !part.first_node.valid() || !(part.first_node < part.end_node)) {
    return failure("segments are of a step in parts, which says which nodes are one part's");
  }
  const std::int32_t first = part.first_node.value;
  const std::int32_t length = part.end_node.value - first;
  const bool ascending =
      std::ranges::adjacent_find(borders, std::greater_equal<>()) == borders.end();
  if (!ascending || (!borders.empty() && (borders.front() < 1 || borders.back() >= length))) {
    return failure("borders of segments ascend, from the second node of a part to its last");
  }
  std::vector<std::int32_t> order(step.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  auto to = order.begin() + first;
  for (std::size_t segment = 0; segment <= borders.size(); ++segment) {
    const std::int32_t begin = segment == 0 ? 0 : borders[segment - 1];
    const std::int32_t end = segment == borders.size() ? length : borders[segment];
    for (int i = 0; i < parts; ++i) {
      std::iota(to, to + (end - begin), first + i * length + begin);
      to += end - begin;
    }
  }
  std::vector<NodeRun> runs = runs_of_order(step, order);
  return with_order(std::move(step), std::move(runs));
}

int segment_count(const StepGraph& step) {
  if (step.settings.mode != Mode::inference) return 1;
  int segments = 0;
  bool within = false;
  for (const KernelNode& node : step.nodes) {
    const bool first_part = node.micro_batch == 0;
    if (first_part && !within) ++segments;
    within = first_part;
  }
  return std::max(segments, 1);
}

}  // namespace stowage
