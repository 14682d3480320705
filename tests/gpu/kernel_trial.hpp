// try_on(): runs one small call of a kernel on a backend, and compares it with the host's result of
// the same call.
#pragma once

#include <string>

#include "gpu_probe/backend/backend.hpp"
#include "tests/gpu_probe/host/kernels/kernel_samples.hpp"

namespace stowage::test {

/// The tolerance relative to a result's largest value. For 16-bit formats, which are rounded once,
/// it is two units in the last place. For float32 and float64 it covers sums in another order and
/// engines that transform (Winograd's). The host computes float64 in float64.
[[nodiscard]] double kernel_tolerance(DataType type);

struct TrialResult {
  /// The largest difference of an element of any result, divided by the largest value of that
  /// result. Infinite where only one side is finite, or where results that are not floating-point
  /// numbers differ.
  double difference = 0;
  std::string problem;  ///< the error of a backend or a kernel; "": none failed
  [[nodiscard]] bool passed(DataType type) const {
    return problem.empty() && difference <= kernel_tolerance(type);
  }
};

/// `type`: of the sample's floating arguments. Inputs are drawn: numbers from 0.1 to 0.9, which
/// every kernel accepts, indices 1 and 2, masks of 0 and 1. Results are NaN before the call.
[[nodiscard]] TrialResult try_on(Backend& backend, const KernelSample& sample, DataType type);

}  // namespace stowage::test
