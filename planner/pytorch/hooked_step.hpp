// The time of a step whose saved tensors are offloaded by hooks: kernels one after the other on the
// GPU, and two streams of copies beside them.
#pragma once

#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "planner/problem/rates.hpp"
#include "planner/pytorch/offload_decisions.hpp"

namespace stowage {

/// When a kernel runs, or a storage is copied or, on the CPU, updated: seconds from the step's
/// begin.
struct HookedSpan {
  NodeId node;        ///< of the step; none: a copy or an update on the CPU
  StorageId storage;  ///< the copied one, the gradient of an update; none: all of them at once
  double begin = 0, end = 0;
};

/// What runs when, each lane in the order of its spans' begins.
struct HookedLanes {
  std::vector<HookedSpan> gpu, cpu, to_host, from_host;
};

struct HookedStep {
  double seconds = 0;
  double busy_seconds = 0;  ///< of the kernels alone
  Bytes pinned;             ///< on the host at most at a time
  HookedLanes lanes;
};

/// What PyTorch's hooks for a saved tensor take of the host, pack and unpack together. Measured on
/// the host of an H200 with PyTorch 2.11 (bench/moves/results): 15 microseconds. The host is ahead
/// of the GPU, so that this counts only where all hooks take longer than the step.
inline constexpr double hook_seconds = 15e-6;
/// What an early update takes of the host: a step of AdamW for one parameter. Measured with
/// PyTorch 2.15 on the CPU (docs/apply.md); it counts as hook_seconds does.
inline constexpr double update_hook_seconds = 105e-6;

/// What a step whose updates were moved (with_updates) takes besides its kernels.
struct UpdateTimes {
  double cpu_seconds_a_byte = 0;  ///< of the CPU's updates, by their gradients' bytes
  bool early = false;             ///< the CPU begins with the first gradient, not after the last
  std::size_t hooks = 0;          ///< early updates of a step, on the GPU or the CPU
};

/// Each copy waits for the kernels that were queued before it and for the copies before it on its
/// stream. Where memory is let go, and where a fetched tensor or a streamed piece is needed first,
/// the kernels wait for the copy. A step of with_updates may have copies of its own: the CPU
/// updates parameter by parameter once its gradient is on the host (early), or all once all are,
/// and after the GPU's last kernel each is copied back. `decisions` are of the step's nodes;
/// `calls`: of hooks for saved tensors. O(nodes + decisions * log decisions).
[[nodiscard]] HookedStep hooked_step(const SizedStep& step, const Rates& rates,
                                     const std::vector<OffloadDecision>& decisions,
                                     std::size_t calls, const UpdateTimes& updates = {});

}  // namespace stowage
