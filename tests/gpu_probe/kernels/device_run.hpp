// Runs one of our own kernels as a device runs it: in a device's arithmetic and formats, with its
// indices in another order and several threads in a group. Compares it with the host's results for
// the same numbers.
#pragma once

#include <vector>

#include "tests/gpu_probe/host/kernels/kernel_call.hpp"

namespace stowage::test {

/// A call before it has run. `writes` are as the test has made them; one that is also a read tensor
/// is written in place.
struct DeviceCall {
  Kernel kernel;
  const Attributes& attributes;
  const std::vector<Tensor*>& reads;
  const std::vector<Tensor*>& writes;
};

/// Checks that results agree with the host's for the same rounded arguments, in float32, float64,
/// float16 and bfloat16. Changes none of the tensors. Precondition: the kernel has a row, and the
/// host accepts the call.
void check_as_device(const DeviceCall& call);

/// The largest difference of results, by format. The last test prints it.
struct DeviceDistances {
  double float32 = 0, float64 = 0, float16 = 0, bfloat16 = 0;
  std::size_t calls = 0;
};
[[nodiscard]] const DeviceDistances& device_distances();

}  // namespace stowage::test
