// The workspaces that PyTorch keeps for cuBLAS and cuBLASLt, from its own allocator.
#pragma once

#include <vector>

#include "estimator/card/card.hpp"
#include "estimator/card/software_stack.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// One for each thread that calls cuBLAS (forward's, and autograd's when training): 8,519,680 bytes
/// each, and 33,554,432 from compute capability 9.0 on: PyTorch 2.15's own answers
/// (tests/reference/blas_workspace.py). Before 2.12 it was 8,519,680 on 10.0 and later too. Before
/// 2.12 cuBLASLt, which has the products with a bias, had 1 MiB of its own: kept from 2.9 on, until
/// then allocated in each call, and counted as if it were kept (pull requests 175344, 156495 and
/// 168175; 2.11.0 was seen to keep it on an H100, bench/ground_truth).
[[nodiscard]] std::vector<RuntimeBuffer> cublas_workspaces(const StepGraph& graph, const Card& card,
                                                           const ReleaseVersion& pytorch);

}  // namespace stowage
