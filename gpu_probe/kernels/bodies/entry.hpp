// The two functions that NVRTC compiles for a body. They call it once for each index, or for each
// thread of a group.
#pragma once

#include "gpu_probe/kernels/bodies/group.hpp"

namespace stowage::body {

template <class Body>
__global__ void each_index(const Body body, const Index count) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    body(i);
  }
}

template <class Body>
__global__ void each_group(const Body body, const Index count) {
  const Group group;
  for (Index i = blockIdx.x; i < count; i += gridDim.x) {
    body(i, group);
    group.synchronize();
  }
}

}  // namespace stowage::body
