// Which nodes of a step call cuDNN or cuBLAS.
#pragma once

#include "estimator/step/step_graph.hpp"

namespace stowage {

[[nodiscard]] bool calls_cudnn(const KernelNode& node);
[[nodiscard]] bool calls_cublas(const KernelNode& node);

}  // namespace stowage
