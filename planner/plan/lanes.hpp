// Lanes: how long a step takes with a lane for the GPU, one for the CPU and two for copies.
//
// Simulates what plan.hpp says a plan means: the GPU's nodes one after the other on one lane, the
// CPU's in the order of issue on another, uploads in their order on a third, downloads on a fourth.
#pragma once

#include <span>
#include <vector>

#include "estimator/base/step_range.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

struct Span {
  double begin = 0;  ///< seconds from the step's start
  double end = 0;
};

struct LaneTimeline {
  std::vector<Span> nodes;      ///< by NodeId
  std::vector<Span> transfers;  ///< in the order of the argument
  std::vector<double> stalls;   ///< by NodeId: how long step i waited for copies
  /// By boundary: the time when all nodes that finish there have finished, before the wait for any
  /// copy.
  std::vector<double> arrivals;
  double step_seconds = 0;
  double compute_seconds = 0;   ///< of the nodes alone
  double transfer_seconds = 0;  ///< of the copies alone, both lanes
  double stall_seconds = 0;     ///< of all steps, and of the wait for copies at the end
  double overlap = 1;           ///< share of transfer_seconds that no step waited for
};

/// Simulates a step. `cpu_windows`: by NodeId, when the CPU's nodes run, with empty ranges for the
/// GPU's nodes; without windows all nodes are the GPU's. Preconditions: the order of transfers that
/// plan.hpp defines; begin <= end <= number of nodes; one entry of `transfer_seconds` a transfer;
/// links are those of gpu_and_host(); a window contains its node's step. Linear.
[[nodiscard]] LaneTimeline simulate_lanes(std::span<const double> node_seconds,
                                          std::span<const Transfer> transfers,
                                          std::span<const double> transfer_seconds,
                                          std::span<const StepRange> cpu_windows = {});

}  // namespace stowage
