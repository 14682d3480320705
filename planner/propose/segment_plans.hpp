// segments_plan: an inference in chunks, segment by segment (rewrite/segments.hpp), for steps where
// neither the weights nor the batch's activations fit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/propose/step_plans.hpp"

namespace stowage {

/// The bytes by which segments are chosen, at the size of the whole batch.
struct SegmentCosts {
  std::vector<Bytes> weights;   ///< by node: persistent bytes of which it is the first user
  std::vector<Bytes> crossing;  ///< by node: bytes made before it and read by it or a later node
};
/// For a step of one micro-batch that says which nodes belong to it; other nodes are left out.
[[nodiscard]] SegmentCosts segment_costs(const SizedStep& step);

/// The borders (as with_segments takes them) with the fewest bytes crossing in all; of equal ones,
/// the fewest borders. In each segment the weights, and the most that one of its nodes takes beside
/// them (`beside`, by node, of one chunk), are within the limit. None: a single node exceeds it.
/// O(nodes log nodes).
[[nodiscard]] std::optional<std::vector<std::int32_t>> cheapest_borders(
    const SegmentCosts& costs, const std::vector<Bytes>& beside, Bytes limit);

/// The plan "segments-S-chunk-K": the shortest simulated step of a few numbers of chunks and limits
/// of a segment. None: the step trains, has parts or one batch only; all weights fit beside a
/// chunk; a chunk without weights does not fit; there is no plan.
[[nodiscard]] std::optional<Plan> segments_plan(const Planning& planning, const StepCase& whole);

}  // namespace stowage
