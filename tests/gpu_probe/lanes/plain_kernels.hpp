// Which kernels the tests of lanes run. ThreadSanitizer sees nothing of what OpenBLAS and oneDNN
// touch, so that under it products are loops of our own, and convolutions are left out.
#pragma once

#include "gpu_probe/host/kernel_lane.hpp"

namespace stowage::test {

/// The host's; under ThreadSanitizer those that it can see.
[[nodiscard]] RunKernel tested_kernels();
/// Of a run on them, held against the resident step on the host's kernels: 0 where they are the
/// same ones.
[[nodiscard]] double tested_tolerance();
[[nodiscard]] bool has_convolutions();

/// linear_forward, linear_backward_data, linear_backward_filter and matmul in float32, one product
/// after the other, sums in float64; other kernels as the host runs them.
[[nodiscard]] Result<void> run_plain_kernel(const KernelCall& call);

}  // namespace stowage::test
