// Where and when parameters are updated: rewrites a step of PyTorch's kernels so that updates run
// on the CPU, with the optimizer's state in its memory, or as soon as a gradient is whole.
//
//   as it is     backward: grad c, grad b, grad a | update of a, b, c
//   a, c on CPU  backward: grad c, c to the host, grad b, grad a, a to the host | update of b |
//                c, a from the host
//   early        backward: grad c, update of c, grad b, update of b, ...
//   both         backward: grad c, c to the host, grad b, update of b, grad a, a to the host | ...
//
// On the CPU: a gradient goes to pinned memory as soon as it is whole, and its memory is let go
// when `gradients_in_flight` more have come: the copies of so many are under way at a time. The CPU
// updates its own copies of these parameters, after backward or beside it, which are then copied
// back. The GPU has neither their state nor their gradients in between (ZeRO-Offload, Ren et al.
// 2021). Early: a gradient is let go when its parameter is updated, by the update's kernels for
// this parameter alone (PyTorch's "optimizer step in backward").
#pragma once

#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// How many gradients lie on the GPU while they are copied to the host.
inline constexpr std::size_t gradients_in_flight = 2;

struct UpdateChoice {
  enum class OnHost { none, some, all };
  OnHost on_host = OnHost::none;
  std::vector<ParameterId> parameters = {};  ///< some: which
  bool early = false;  ///< each update, wherever it runs, as soon as its gradient is whole

  [[nodiscard]] bool changes_nothing() const { return on_host == OnHost::none && !early; }
};

/// What the host keeps is added to StepGraph::host_buffers and host_state_bytes. `micro_batch` is
/// unset: gradients do not add up on the GPU. Linear in the step, except for sorting.
/// Errors: those of parameter_updates(); updates are to be early and cannot
/// (ParameterUpdates::late), or they are to be divided, and have no parts.
[[nodiscard]] Result<StepGraph> with_updates(StepGraph step, const UpdateChoice& choice);

/// All of them on the host, after backward.
[[nodiscard]] Result<StepGraph> with_update_on_host(StepGraph step);

}  // namespace stowage
