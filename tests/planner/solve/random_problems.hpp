// Random residency problems, small enough to try every placement of them.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "planner/problem/residency_problem.hpp"

namespace stowage {

using Random = std::mt19937_64;

/// Uniform in [0, bound).
std::int64_t below(Random& random, std::int64_t bound);

/// At most 18 binary unknowns: free devices, gaps, copies beside CPU readers. All times are whole
/// multiples of 2^-10 s and all sizes of 1 MiB, so that sums of them are exact.
ResidencyProblem random_problem(Random& random);

/// One way to place an item under given devices.
struct ItemChoice {
  std::vector<bool> on_gpu;
  std::vector<bool> resident;
  double seconds = 0;
  std::vector<std::int64_t> memory;  ///< by step
};

/// Everything that can be chosen once the devices are: every consistent choice of each item.
struct DeviceAssignment {
  std::vector<Device> device;
  std::vector<std::vector<ItemChoice>> choices;  ///< by item
};
std::vector<DeviceAssignment> all_assignments(const ResidencyProblem& problem);

/// The least of cost + sum of price[t] * memory[t] over all placements.
double cheapest_priced(const ResidencyProblem& problem,
                       const std::vector<DeviceAssignment>& assignments,
                       const std::vector<double>& price);

/// The least cost within the budget; nullopt: no placement is.
std::optional<double> cheapest_within(const ResidencyProblem& problem,
                                      const std::vector<DeviceAssignment>& assignments,
                                      Bytes budget);
/// The same within a limit of each step.
std::optional<double> cheapest_within(const ResidencyProblem& problem,
                                      const std::vector<DeviceAssignment>& assignments,
                                      const std::vector<Bytes>& limits);

}  // namespace stowage
