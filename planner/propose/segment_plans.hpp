// An inference in chunks, segment by segment (rewrite/segments.hpp): where neither the weights nor
// the batch's activations fit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/propose/step_plans.hpp"

namespace stowage {

/// What a part of the batch leaves between its nodes, at the size of the whole batch.
struct SegmentCosts {
  std::vector<Bytes> weights;   ///< by node: persistent bytes that it is the first to touch
  std::vector<Bytes> crossing;  ///< by node: bytes made before it and read by it or a later one
};
/// Of a step of one micro-batch that says which nodes are that; the rest of the step is left out.
[[nodiscard]] SegmentCosts segment_costs(const SizedStep& step);

/// The borders (as with_segments takes them) with the fewest bytes crossing in all, of equal ones
/// the fewest, where no segment's weights and the most that one of its nodes takes beside them
/// (`beside`, by node, of one chunk) exceed the limit. None: a node alone does. O(nodes log nodes).
[[nodiscard]] std::optional<std::vector<std::int32_t>> cheapest_borders(
    const SegmentCosts& costs, const std::vector<Bytes>& beside, Bytes limit);

/// "segments-S-chunk-K": the shortest simulated step of a few numbers of chunks and limits on
/// what a segment takes. None: the step trains, has parts or one batch only; all weights fit beside
/// a chunk, or a chunk without them does not; no plan.
[[nodiscard]] std::optional<Plan> segments_plan(const Planning& planning, const StepCase& whole);

}  // namespace stowage
