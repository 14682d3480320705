// The memory that torch.backends.cudnn.benchmark uses: the timing buffer of the first step, and the
// fastest plan's workspace.
//
// PyTorch (ATen/native/cudnn/Conv_v8.cpp, generate_and_filter_plans) builds all plans of the
// INSTANT and FALLBACK lists, drops those that need more memory than is available, allocates ONE
// buffer of the largest remaining workspace, times the plans in it, frees it, and keeps the fastest
// plan, which allocates its own workspace at each later call. It times only the first
// torch.backends.cudnn.benchmark_limit plans (cudnn-frontend, time_sorted_plan), so that the buffer
// may be larger than the workspace of any timed plan. Only timing decides which plan is fastest, so
// this file gives the possible ones; the largest workspace is the conservative choice.
#pragma once

#include <cstddef>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

/// The default of torch.backends.cudnn.benchmark_limit.
inline constexpr std::size_t benchmark_limit = 10;

struct BenchmarkOutcome {
  /// Allocated and freed in a convolution's first call, before the call itself.
  Bytes buffer;
  /// The timed plans, any of which may be the fastest: one for each workspace size, largest first.
  /// The first is the conservative choice, and this is also the pessimistic order in which PyTorch
  /// would try the plans if the fastest does not fit. Empty: no plan fits the available memory, and
  /// PyTorch raises an error.
  std::vector<Engine> winners;
};

/// `plans`: as in WorkspaceAnswer::benchmark. `available`: the larger of the driver's free memory
/// and the largest free block of PyTorch's cache. If the buffer still cannot be allocated, PyTorch
/// halves it until it can, and drops the plans that need more: call this again with that half.
[[nodiscard]] BenchmarkOutcome benchmark_outcome(const std::vector<Engine>& plans, Bytes available);

/// As above, with enough memory for every plan.
[[nodiscard]] BenchmarkOutcome benchmark_outcome(const std::vector<Engine>& plans);

}  // namespace stowage
