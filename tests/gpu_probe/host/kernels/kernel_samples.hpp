// One small call of every host kernel: all that a test needs to try them one by one.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

namespace stowage::test {

/// An argument; the type of a `floating` one is the test's to choose.
struct SampleArgument {
  Sizes shape;
  bool floating = true;
  DataType type = DataType::float32;
  bool doubles = false;  ///< bytes of values that are as many, and larger, where floats are float64
};

struct KernelSample {
  Kernel kernel;
  AttributeList attributes;
  std::vector<SampleArgument> reads, writes;
  /// Of the first writes, which read each is in place of.
  std::vector<std::size_t> in_place = {};
};

/// Zeros suit all of them.
[[nodiscard]] const std::vector<KernelSample>& kernel_samples();

/// Runs it with the floating arguments of a type, on zeros.
[[nodiscard]] Result<void> try_sample(const KernelSample& sample, DataType floating);

}  // namespace stowage::test
