// PlacedStep: a step with a placement, and what the placement implies before anything is scheduled.
#pragma once

#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "planner/assemble/item_moves.hpp"
#include "planner/assemble/schedule_copies.hpp"

namespace stowage {

class PlacedStep {
 public:
  /// All three must outlive it. Preconditions: `problem` is make_problem's of `step`; evaluate()
  /// calls the placement consistent.
  PlacedStep(const SizedStep& of, const ResidencyProblem& problem_of, const Placement& placed);

  const SizedStep& step;
  const ResidencyProblem& problem;
  const Placement& placement;
  ItemMoves moves;
  std::vector<double> node_seconds;  ///< by node, on its device

  [[nodiscard]] std::int32_t steps() const {
    return static_cast<std::int32_t>(problem.operations.size());
  }
  [[nodiscard]] bool on_gpu(std::int32_t node) const {
    return placement.device[static_cast<std::size_t>(node)] == Device::gpu;
  }
  [[nodiscard]] Bytes workspace(std::int32_t node) const;
  [[nodiscard]] const std::vector<StorageId>& temporaries(std::int32_t node) const {
    return step.graph->nodes[static_cast<std::size_t>(node)].temporaries;
  }
  /// The steps of each stay, without copies in flight.
  [[nodiscard]] std::vector<StepRange> own_stays() const;
  /// The seconds of the simulated step. The schedule's transfers are in the order of copies_of.
  [[nodiscard]] double step_seconds(const CopySchedule& schedule) const;
};

}  // namespace stowage
