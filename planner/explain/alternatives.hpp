// Alternatives: the cost of a plan if some of it were on the other side.
//
// All else stays as the plan has it, and memory is no limit: a storage that leaves the CPU may stay
// on the GPU wherever that saves a copy. So a difference is a price, not a plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/explain/planned_problem.hpp"

namespace stowage {

enum class Alternative : std::uint8_t {
  as_planned,
  on_cpu,   ///< the operations run on the CPU
  on_gpu,   ///< the operations run on the GPU
  kept,     ///< the storages stay on the GPU wherever they may
  swapped,  ///< the storages leave the GPU in every gap
};
[[nodiscard]] std::string_view to_string(Alternative alternative);

/// Operations and items of the problem that are moved together.
struct Selection {
  std::vector<std::int32_t> operations;
  std::vector<std::int32_t> items;
};

/// The difference to the plan's own cost; negative: saved.
struct AddedCost {
  double seconds = 0;
  std::int64_t h2d_bytes = 0, d2h_bytes = 0;
};

/// Linear in the touches of the selection and of what its operations touch, times the gaps beside
/// them.
[[nodiscard]] AddedCost added_cost(const PlannedProblem& planned, const Selection& selection,
                                   Alternative alternative);

/// The peak on the GPU with the alternative. Linear in the problem.
[[nodiscard]] Bytes peak_with(const PlannedProblem& planned, const Selection& selection,
                              Alternative alternative);

struct AlternativeCost {
  Alternative alternative = Alternative::as_planned;
  double cost_seconds = 0;
  Bytes h2d_bytes, d2h_bytes;
  Bytes gpu_peak;  ///< of what the placement keeps, without copies in flight
  std::int32_t peak_step = 0;
};

/// The plan as it is, then each alternative that differs from it. Linear in the problem.
[[nodiscard]] std::vector<AlternativeCost> alternative_costs(const PlannedProblem& planned,
                                                             const Selection& selection);

}  // namespace stowage
