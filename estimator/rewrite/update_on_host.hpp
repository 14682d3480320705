// The optimizer on the host: rewrites a step of PyTorch's kernels so that parameters' updates run
// on the CPU, with the optimizer's state in its memory.
//
//   on the GPU   backward: grad a, grad b, ... | update of a, b, ...
//   on the host  backward: grad a, a to the host, grad b, b to the host, ... | a, b from the host
//
// A gradient goes to pinned memory as soon as it is whole, and its memory is let go when
// `gradients_in_flight` more have come: the copies of so many are under way at a time. After
// backward the CPU updates its own copies of the parameters, which are then copied back. The GPU
// has neither state nor gradients in between (ZeRO-Offload, Ren et al. 2021).
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// How many gradients lie on the GPU while they are copied to the host.
inline constexpr std::size_t gradients_in_flight = 2;

/// What the host keeps is added to StepGraph::host_buffers and host_state_bytes. `micro_batch` is
/// unset: gradients do not add up on the GPU. Linear in the step, except for sorting.
/// Errors: the step does not train, has several micro-batches or has early updates; gradients
/// persist from step to step; something else than the update reads a gradient (a norm by which all
/// are clipped), or the update reads what is no parameter, gradient or state.
[[nodiscard]] Result<StepGraph> with_update_on_host(StepGraph step);

}  // namespace stowage
