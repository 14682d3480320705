// The time of a step whose saved tensors are offloaded by hooks: kernels one after the other on the
// GPU, and two streams of copies beside them.
#pragma once

#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "planner/problem/rates.hpp"
#include "planner/pytorch/offload_decisions.hpp"

namespace stowage {

struct HookedStep {
  double seconds = 0;
  double busy_seconds = 0;  ///< of the kernels alone
  Bytes pinned;             ///< on the host at most at a time
};

/// What PyTorch's hooks for a saved tensor take of the host, pack and unpack together. Measured on
/// the host of an H200 with PyTorch 2.11 (bench/moves/results): 15 microseconds. The host is ahead
/// of the GPU, so that this counts only where all hooks take longer than the step.
inline constexpr double hook_seconds = 15e-6;

/// Each copy waits for the kernels that were queued before it and for the copies before it on its
/// stream. Where memory is let go, and where a fetched tensor or a streamed piece is needed first,
/// the kernels wait for the copy. A step of with_update_on_host has copies of its own: once all
/// gradients are on the host the CPU updates for `host_update_seconds`, and then the parameters are
/// copied back. `decisions` are of the step's nodes; `calls`: of hooks. O(nodes + decisions * log
/// decisions).
[[nodiscard]] HookedStep hooked_step(const SizedStep& step, const Rates& rates,
                                     const std::vector<OffloadDecision>& decisions,
                                     std::size_t calls, double host_update_seconds = 0);

}  // namespace stowage
