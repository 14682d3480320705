// The reference: a step with everything resident.
//
// Every storage has a buffer of its own from its first touch to its last; there is no arena, no
// transfer and no plan, only the step graph's nodes in their order on the host kernels. It shares
// no code with the executor but the building of a kernel call.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "gpu_probe/run/step_results.hpp"

namespace stowage {

/// `batch` is of one micro-batch. Errors: a host kernel's refusal, with the node's name.
[[nodiscard]] Result<StepResults> run_resident_step(const StepGraph& graph, std::int64_t batch);

/// Several steps, one after the other, on the same inputs: parameters, state and running statistics
/// go on from step to step. By step what it left behind; of those between the first and the last
/// the losses alone. `rounding`: 0, or the seed by which kernels round another way
/// (other_rounding.hpp). Precondition: at least one step.
[[nodiscard]] Result<std::vector<StepResults>> run_resident_steps(const StepGraph& graph,
                                                                  std::int64_t batch,
                                                                  std::int64_t steps,
                                                                  std::uint64_t rounding = 0);

}  // namespace stowage
