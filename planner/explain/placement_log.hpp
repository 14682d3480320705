// The placement log: where each operator and each storage of a plan is, and why.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/explain/planned_problem.hpp"

namespace stowage {

enum class PlacementCause : std::uint8_t {
  pinned,         ///< its user said so
  no_gpu_kernel,  ///< nothing else can run it
  budget,         ///< it would be on the GPU if there were room
  cheaper,        ///< elsewhere the step costs more
  computation,    ///< the plan computes on the GPU (Plan::pinned), whatever else were cheaper
  follows,        ///< its kernels are all on one side, or it is wanted there once
  undecided,      ///< elsewhere it were cheaper by itself: less than the search looks for, or
                  ///< given up for a shorter simulated step
};
[[nodiscard]] std::string_view to_string(PlacementCause cause);

struct PlacementReason {
  PlacementCause cause = PlacementCause::follows;
  std::string pin;           ///< of pinned: "encoder.*=cpu"; of no_gpu_kernel: why there is none
  double seconds = 0;        ///< of budget, cheaper, computation and undecided: by how much
  std::string instead = {};  ///< of these: what was compared with: "on the CPU"
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
