// Segments: the known way to choose what to recompute (Chen, Xu, Zhang and Guestrin, Training deep
// nets with sublinear memory cost, 2016): the forward pass falls into segments of about equal
// length, what crosses a boundary is kept, all else is recomputed but in the last segment, whose
// backward comes at once.
#pragma once

#include "planner/recompute/recompute_model.hpp"

namespace stowage {

/// Each boundary lies where the fewest bytes cross it, within a quarter of a segment of the even
/// split. 1 segment: nothing is recomputed.
[[nodiscard]] RecomputeChoice segment_choice(const RecomputeModel& model, const SizedStep& step,
                                             std::size_t segments);

/// The square root of how many groups there are, rounded: the segments that keep least in theory.
[[nodiscard]] std::size_t usual_segments(const RecomputeModel& model);

}  // namespace stowage
