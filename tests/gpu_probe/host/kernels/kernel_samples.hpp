// KernelSample: one small call of every host kernel, for tests that try them one by one.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

namespace stowage::test {

/// An argument. The test chooses the type of a `floating` one.
struct SampleArgument {
  Sizes shape;
  bool floating = true;
  DataType type = DataType::float32;
  bool doubles = false;  ///< its bytes hold values, which are larger for float64
};

struct KernelSample {
  Kernel kernel;
  AttributeList attributes;
  std::vector<SampleArgument> reads, writes;
  /// For each of the first writes: the read that it replaces.
  std::vector<std::size_t> in_place = {};
};

/// All of them accept zeros as arguments.
[[nodiscard]] const std::vector<KernelSample>& kernel_samples();

/// Runs a sample on zeros, with its floating arguments of a type.
[[nodiscard]] Result<void> try_sample(const KernelSample& sample, DataType floating);

}  // namespace stowage::test
