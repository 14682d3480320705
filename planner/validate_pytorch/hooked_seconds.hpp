// The time of a step that hooks of PyTorch's run, as the validator counts it: kernels one after the
// other on the GPU, and a stream of copies each way beside them.
#pragma once

#include <functional>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "planner/validate_pytorch/hooked_graph.hpp"

namespace stowage {

/// What kernels and copies take: the planner's rates, of the plan's card and host.
struct StepRates {
  std::function<double(const SizedStep&, NodeId)> gpu, cpu;  ///< seconds of a kernel
  std::function<double(Bytes)> to_host, from_host;           ///< of a copy
  double hook = 0;         ///< of the host, for a saved tensor's two calls
  double update_hook = 0;  ///< of the host, for an early update
};

/// Updates on the CPU.
struct HostUpdateRate {
  double seconds_a_byte = 0;  ///< of a gradient
  bool early = false;         ///< the CPU begins with a parameter when its gradient is there
};

struct HookedSeconds {
  double step = 0;
  double kernels = 0;
};

/// A copy begins when the kernels that were queued before it and the copies before it on its stream
/// are done. A kernel waits for the piece that it reads; where memory is let go, and where backward
/// asks for a fetched tensor, kernels wait for the copy. Parameters that the CPU updates come back
/// at the end, each when it is updated: early ones were updated in a row beside backward, others
/// all together after it.
[[nodiscard]] HookedSeconds hooked_seconds(const SizedStep& step, const HookedGraph& hooked,
                                           const std::vector<Bytes>& bytes_of_stays,
                                           const StepRates& rates, const HostUpdateRate& update);

}  // namespace stowage
