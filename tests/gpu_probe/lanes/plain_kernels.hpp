// The kernels that the tests of lanes run. ThreadSanitizer does not see the memory accesses of
// OpenBLAS and oneDNN. So under it products are loops of our own, and convolutions are left out.
#pragma once

#include "gpu_probe/host/kernel_lane.hpp"

namespace stowage::test {

/// The host's kernels; under ThreadSanitizer those whose accesses it sees.
[[nodiscard]] RunKernel tested_kernels();
/// The tolerance of a run on these kernels that is compared with the resident step on the host's: 0
/// where both are the same kernels.
[[nodiscard]] double tested_tolerance();
[[nodiscard]] bool has_convolutions();

/// Runs linear_forward, linear_backward_data, linear_backward_filter and matmul in float32, one
/// product after the other, with sums in float64; runs other kernels as the host does.
[[nodiscard]] Result<void> run_plain_kernel(const KernelCall& call);

}  // namespace stowage::test
