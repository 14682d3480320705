// Peaks that differ by bytes whose owners are not told apart: variables within transformers' layers
// and in their callers. Exact, so that a change on either side shows.
#pragma once

#include "estimator/base/bytes.hpp"
#include "tests/estimator/reference/reference_model.hpp"

namespace stowage::reference {

/// What PyTorch's peaks have above ours: of the forward phase, and where that (or backward) is the
/// step's peak, of the step rounded to blocks, and of the first step.
struct PeakGap {
  Bytes forward, rounded = {}, first = {}, backward = {};
};
[[nodiscard]] PeakGap peak_gap(const ReferenceModel& reference);

}  // namespace stowage::reference
