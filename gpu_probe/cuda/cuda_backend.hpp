// The CUDA backend: cuDNN and cuBLAS kernels, the two arenas in device and pinned memory, copies on
// two streams.
//
// What it is to keep to, beyond backend.hpp: one cudaMalloc for the GPU arena and one cudaHostAlloc
// for the host's; kernels on a compute stream with their workspaces in the arena; a Ticket a
// pair of events around the work, from which ran() has its times; copy() records its events after
// waiting for `after`; write_gpu, read_gpu and fill_gpu wait for the compute stream first.
// CPU-placed kernels run on the host kernels (host_kernels.hpp) after the compute stream and the
// copies that they wait for are done.
//
// It runs no kernels yet: opening it says so where there is a GPU, so that no run can be taken for
// one that was made.
#pragma once

#include <memory>

#include "gpu_probe/backend/backend.hpp"

namespace stowage {

/// Errors: those of cuda_devices() (no driver, no device); with a GPU, that the backend runs no
/// kernels yet. `stowage validate --on cuda` exits 3 on each of them and never prints a pass.
[[nodiscard]] Result<std::unique_ptr<Backend>> open_cuda_backend();

}  // namespace stowage
