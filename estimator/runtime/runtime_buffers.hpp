// The buffers that a runtime keeps beside the step's tensors, from its own allocator.
#pragma once

#include <vector>

#include "estimator/card/card.hpp"
#include "estimator/runtime/check_settings.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// settings.resident, those of data-parallel training (partition.hpp), and cuBLAS's workspaces in
/// PyTorch, one for each thread that calls it (forward's, and autograd's when training):
/// 8,519,680 bytes each, and 33,554,432 from compute capability 9.0 on: PyTorch 2.15's own answers
/// (tests/reference/blas_workspace.py). Before 2.12 it was 8,519,680 on 10.0 and later too. Before
/// 2.12 cuBLASLt, which has the products with a bias, had 1 MiB of its own: kept from 2.9 on, until
/// then allocated in each call, and counted as if it were kept (pull requests 175344, 156495 and
/// 168175; 2.11.0 was seen to keep it on an H100, bench/ground_truth).
[[nodiscard]] std::vector<RuntimeBuffer> runtime_buffers(const StepGraph& graph, const Card& card,
                                                         const CheckSettings& settings);

}  // namespace stowage
