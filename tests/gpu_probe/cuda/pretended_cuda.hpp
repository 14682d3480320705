// Libraries that pretend to be CUDA's, for the cuda backend: a driver whose device is the host's
// memory and whose kernels are the bodies themselves, an NVRTC that returns their names, and a
// cuBLAS and a cuDNN that follow their definitions. Nothing that runs on them has run on a GPU.
#pragma once

#include "gpu_probe/cuda/cuda_backend.hpp"
#include "tests/gpu_probe/device/fake_driver/fake_blas.hpp"
#include "tests/gpu_probe/device/fake_driver/fake_cudnn.hpp"
#include "tests/gpu_probe/device/fake_driver/fake_lanes.hpp"

namespace stowage::test {

/// The settings of each library, and what it has counted since the last pretended_setup().
[[nodiscard]] FakeLanes& pretended_driver();
[[nodiscard]] FakeBlas& pretended_cublas();
[[nodiscard]] FakeCudnn& pretended_cudnn();

/// Resets all of them. Throws std::runtime_error where one does not load.
[[nodiscard]] CudaSetup pretended_setup();

}  // namespace stowage::test
