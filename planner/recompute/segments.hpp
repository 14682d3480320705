// segment_choice: recomputation by segments (Chen, Xu, Zhang and Guestrin, Training deep nets with
// sublinear memory cost, 2016). The forward pass is cut into segments of about equal length. Values
// that cross a boundary are kept, all others are recomputed, except in the last segment, whose
// backward pass follows at once.
#pragma once

#include "planner/recompute/recompute_model.hpp"

namespace stowage {

/// Each boundary lies where the fewest bytes cross it, within a quarter of a segment of the even
/// split. 1 segment: nothing is recomputed.
[[nodiscard]] RecomputeChoice segment_choice(const RecomputeModel& model, const SizedStep& step,
                                             std::size_t segments);

/// The default number of segments: the square root of the number of groups, rounded, which keeps
/// least in theory.
[[nodiscard]] std::size_t default_segment_count(const RecomputeModel& model);

}  // namespace stowage
