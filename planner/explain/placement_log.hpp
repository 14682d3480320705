// The placement log: the side of each operator and each storage of a plan, and the reason.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/explain/planned_problem.hpp"

namespace stowage {

enum class PlacementCause : std::uint8_t {
  pinned,         ///< the user pinned it
  no_gpu_kernel,  ///< no GPU kernel exists
  budget,         ///< it would be on the GPU if memory allowed
  cheaper,        ///< on the other side the step costs more
  computation,    ///< the plan computes on the GPU (Plan::pinned), whatever it costs
  follows,        ///< all its kernels are on one side, or it is needed there once
  /// Cheaper elsewhere on its own: by less than the search looks for, or given up for a shorter
  /// simulated step.
  undecided,
};
[[nodiscard]] std::string_view to_string(PlacementCause cause);

struct PlacementReason {
  PlacementCause cause = PlacementCause::follows;
  std::string pin;           ///< for pinned: "encoder.*=cpu"; for no_gpu_kernel: why there is none
  double seconds = 0;        ///< the difference, for budget, cheaper, computation and undecided
  std::string instead = {};  ///< for these causes, what was compared: "on the CPU"
};
/// "pinned by 'encoder.*=cpu'", "cheaper by 1.2 ms than on the CPU".
[[nodiscard]] std::string in_words(const PlacementReason& reason);

[[nodiscard]] PlacementReason reason_of(const Plan& plan, const PlannedProblem& planned,
                                        NodeId node);
[[nodiscard]] PlacementReason reason_of(const Plan& plan, const PlannedProblem& planned,
                                        StorageId storage);

/// Parameters, their copies, buffers, gradients, state and inputs: what users call variables.
[[nodiscard]] bool is_variable(const Storage& storage);

}  // namespace stowage
