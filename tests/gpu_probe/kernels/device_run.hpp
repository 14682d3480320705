// A kernel of our own run as a device runs it: in its arithmetic and formats, its indices in
// another order, several threads a group; beside what the host makes of the same numbers.
#pragma once

#include <vector>

#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

namespace stowage::test {

/// A call before it has run. `writes` are as the test has made them; where one is a read tensor,
/// it is in its place.
struct DeviceCall {
  Kernel kernel;
  const Attributes& attributes;
  const std::vector<Tensor*>& reads;
  const std::vector<Tensor*>& writes;
};

/// Checks that results agree with the host's of the same, rounded, arguments, for float32, float64,
/// float16 and bfloat16. Changes none of the tensors. Precondition: the kernel has a row, and the
/// host takes the call.
void check_as_device(const DeviceCall& call);

/// How far apart the results were at most, by format; printed by the last test.
struct DeviceDistances {
  double float32 = 0, float64 = 0, float16 = 0, bfloat16 = 0;
  std::size_t calls = 0;
};
[[nodiscard]] const DeviceDistances& device_distances();

}  // namespace stowage::test
