// Lanes: how long a step takes with one compute lane and two copy lanes.
//
// Simulates what plan.hpp says a plan means: nodes one after the other (those on the CPU too: they
// wait for each other), uploads in their order on one lane, downloads on the other.
#pragma once

#include <span>
#include <vector>

#include "planner/plan/plan.hpp"

namespace stowage {

struct Span {
  double begin = 0;  ///< seconds from the step's start
  double end = 0;
};

struct LaneTimeline {
  std::vector<Span> nodes;      ///< by NodeId
  std::vector<Span> transfers;  ///< as given
  std::vector<double> stalls;   ///< by NodeId: how long the node waited for copies
  double step_seconds = 0;
  double compute_seconds = 0;   ///< of the nodes alone
  double transfer_seconds = 0;  ///< of the copies alone, both lanes
  double stall_seconds = 0;     ///< of all nodes, and of the wait for copies at the end
  double overlap = 1;           ///< share of transfer_seconds that no node waited for
};

/// Preconditions: plan.hpp's order of transfers, begin <= end <= number of nodes; one entry of
/// `transfer_seconds` a transfer; links are those of gpu_and_host(). Linear.
[[nodiscard]] LaneTimeline simulate_lanes(std::span<const double> node_seconds,
                                          std::span<const Transfer> transfers,
                                          std::span<const double> transfer_seconds);

}  // namespace stowage
