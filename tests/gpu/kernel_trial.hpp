// One small call of a kernel on a backend, held against the host's result of the same call.
#pragma once

#include <string>

#include "gpu_probe/backend/backend.hpp"
#include "tests/gpu_probe/host/kernels/kernel_samples.hpp"

namespace stowage::test {

/// Of the largest value of a result: two units in the last place of the 16-bit formats, which are
/// rounded to once; of float32 and float64 what sums in another order and engines that transform
/// (Winograd's) may differ by. The host computes float64 in float64.
[[nodiscard]] double kernel_tolerance(DataType type);

struct TrialResult {
  /// Of any result's elements, over the largest value of that result; infinite where one side is
  /// not finite alone, or where results that are no floating-point numbers differ.
  double difference = 0;
  std::string problem;  ///< a backend or a kernel that failed, in its words; "" : none did
  [[nodiscard]] bool passed(DataType type) const {
    return problem.empty() && difference <= kernel_tolerance(type);
  }
};

/// The sample's floating arguments are of `type`. Inputs are drawn: numbers from 0.1 to 0.9, which
/// suit every kernel, indices 1 and 2, masks of 0 and 1; results are NaN before the call.
[[nodiscard]] TrialResult try_on(Backend& backend, const KernelSample& sample, DataType type);

}  // namespace stowage::test
