// What torch.backends.cudnn.benchmark takes: the buffer of the first step and the winner's
// workspace.
//
// PyTorch (ATen/native/cudnn/Conv_v8.cpp, generate_and_filter_plans) builds every plan of the
// INSTANT and the FALLBACK list, drops those that want more than is available, allocates ONE buffer
// of the largest workspace that is left, times the plans in it, frees it, and keeps the fastest,
// which allocates its own workspace at each call from then on. It times no more than
// torch.backends.cudnn.benchmark_limit of them, the first ones (cudnn-frontend, time_sorted_plan),
// so that the buffer may be larger than what any winner wants. Only a timing knows the winner: here
// is the range, and its upper end is the conservative choice.
#pragma once

#include <cstddef>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

/// torch.backends.cudnn.benchmark_limit, unless it is set.
inline constexpr std::size_t benchmark_limit = 10;

struct BenchmarkOutcome {
  /// Allocated and freed in a convolution's first call, before the call itself.
  Bytes buffer;
  /// Any of them may win: of the plans that are timed one a workspace, the largest first. So the
  /// first is the conservative end, the last the other one, and this is also the order in which a
  /// pessimist sees PyTorch try them where the winner does not fit. Empty: no plan fits what is
  /// available, and PyTorch raises an error.
  std::vector<Engine> winners;
};

/// `plans` as in WorkspaceAnswer::benchmark. `available`: the larger of what the driver has free
/// and the largest free block of PyTorch's cache. Where the buffer cannot be allocated all the
/// same, PyTorch halves it until it can and drops the plans beyond it: ask again with that half.
[[nodiscard]] BenchmarkOutcome benchmark_outcome(const std::vector<Engine>& plans, Bytes available);

/// The same with room for every plan.
[[nodiscard]] BenchmarkOutcome benchmark_outcome(const std::vector<Engine>& plans);

}  // namespace stowage
