// Where a plan has its layers and parameters, for programs that place whole layers and whole
// parameters, and make the copies between them on their own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "estimator/step/kernel.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// Layers by their paths, in the order in which they run forward; each with the device of its first
/// kernel. Precondition of all functions here: two_sides_mismatch(plan.machine) == "".
struct LayerPlacement {
  std::vector<std::pair<std::string, Device>> layers;
  std::vector<std::string> split;     ///< layers whose forward kernels are on both devices
  std::vector<std::string> backward;  ///< layers whose backward kernels are elsewhere than these
};
[[nodiscard]] LayerPlacement layer_placement(const Plan& plan);

/// Updated parameters by their names, with the device of their updates.
[[nodiscard]] std::map<std::string, Device> update_placement(const Plan& plan);

/// The most bytes that are live on the GPU at once where each value stays from its first use to its
/// last, and persistent ones of `resident` for the whole step; others only while a kernel reads
/// them. Workspaces included.
[[nodiscard]] Bytes peak_without_plan(const Plan& plan, const std::vector<bool>& resident);

}  // namespace stowage
