// The reference that a plan's results are compared with: a step with everything resident.
//
// Every storage has a buffer of its own from its first use to its last. There is no arena, no copy
// and no plan: the step graph's nodes run in their order on the host kernels. It shares no code
// with the executor except the making of a kernel call.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "gpu_probe/run/step_results.hpp"

namespace stowage {

/// `batch`: of one micro-batch. Errors: a host kernel's, with the node's name.
[[nodiscard]] Result<StepResults> run_resident_step(const StepGraph& graph, std::int64_t batch);

/// Runs several steps, one after the other, on the same inputs: parameters, optimizer state and
/// running statistics go on from step to step. Returns the results by step; of the steps between
/// the first and the last only the losses. `rounding`: 0, or a seed for perturbing the kernels'
/// rounding (perturbed_rounding.hpp). Precondition: at least one step.
[[nodiscard]] Result<std::vector<StepResults>> run_resident_steps(const StepGraph& graph,
                                                                  std::int64_t batch,
                                                                  std::int64_t steps,
                                                                  std::uint64_t rounding = 0);

}  // namespace stowage
