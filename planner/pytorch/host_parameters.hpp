// Which parameters are updated on the CPU, where not all of them have to be.
#pragma once

#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "estimator/rewrite/parameter_updates.hpp"
#include "estimator/rewrite/update_on_host.hpp"
#include "planner/problem/rates.hpp"
#include "planner/pytorch/hooked_step.hpp"

namespace stowage {

/// The parameters in the order in which to move their updates: those first whose gradients are
/// whole first, since their copies and the CPU's updates have the most of backward beside them.
/// Left out, and best on the GPU: those of less than 64 KiB, whose copy takes less than the link's
/// latency. Of PyTorch's parameters that is a percent of the bytes.
[[nodiscard]] std::vector<ParameterId> host_parameters(const SizedStep& step,
                                                       const ParameterUpdates& updates);

/// A bound on what crosses PCIe in a step, there and back, whichever updates run on the CPU and
/// whichever saved tensors lie there, where `excess` of the step's tensors find no room
/// (excess_bytes). A parameter on the CPU takes its state, its gradient and what its update makes
/// off the GPU, and crosses twice; a saved tensor takes itself off, and crosses twice: those first
/// that take most off for a byte that crosses, the last one in part. `step` has the updates as they
/// were.
[[nodiscard]] Bytes host_updates_bound(const SizedStep& step, const ParameterUpdates& updates,
                                       Bytes excess);

/// What updates take that were moved by `choice`: on the CPU, the seconds of the step's own update
/// there, shared out by the gradients' bytes.
[[nodiscard]] UpdateTimes update_times(const SizedStep& step, const ParameterUpdates& updates,
                                       const Rates& rates, const UpdateChoice& choice);

}  // namespace stowage
