// LiveSum: how many bytes are live at each step, from ranges of steps with their sizes.
//
// Ranges are only noted at their two ends; one pass over the steps then adds up. So n ranges over m
// steps cost O(n + m), however long the ranges are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/step_range.hpp"

namespace stowage {

class LiveSum {
 public:
  /// Of the steps [0, steps).
  explicit LiveSum(std::int32_t steps);

  [[nodiscard]] std::int32_t steps() const { return static_cast<std::int32_t>(change_.size()) - 1; }
  /// Precondition: 0 <= begin, end <= steps. An empty range adds nothing. Throws
  /// ArithmeticOverflow where the sums at one end leave 64 bits.
  void add(StepRange range, Bytes bytes);
  /// Live bytes during each step. Throws ArithmeticOverflow where they do not fit 64 bits.
  [[nodiscard]] std::vector<Bytes> by_step() &&;

 private:
  // By step, and one past the last: how many more bytes are live then than in the step before.
  std::vector<Bytes> change_;
};

struct Peak {
  Bytes bytes;
  std::int32_t step = 0;  ///< the first step at which the sum is largest
};
/// Of no steps: no bytes, at step 0. Precondition: no sum is negative.
[[nodiscard]] Peak peak(std::span<const Bytes> live);

}  // namespace stowage
