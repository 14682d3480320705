// What differs between two plans: devices and engines of nodes, places and copies of storages.
//
// By name: of two steps that differ, what both have is compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "planner/explain/planned_problem.hpp"

namespace stowage {

/// Of one plan: where a node runs, and how.
struct NodePlace {
  Device device = Device::gpu;
  bool beside_gpu = false;  ///< on the CPU, while the GPU goes on
  std::string engine;
  Bytes workspace;
  bool operator==(const NodePlace&) const = default;
};
struct NodeChange {
  std::string name;
  NodePlace before, after;
};

struct StoragePlace {
  StorageState state = StorageState::unused;
  Bytes h2d, d2h;  ///< a step
  bool operator==(const StoragePlace&) const = default;
};
struct StorageChange {
  std::string name;
  Bytes bytes;  ///< in the second plan
  StoragePlace before, after;
};

struct PlanComparison {
  bool same_step = false;           ///< the steps' hashes are one
  std::int64_t compared_nodes = 0;  ///< that both have, and so on
  std::int64_t compared_storages = 0;
  std::int64_t nodes_only_before = 0, nodes_only_after = 0;
  std::int64_t storages_only_before = 0, storages_only_after = 0;
  std::vector<NodeChange> nodes;        ///< in the first plan's order
  std::vector<StorageChange> storages;  ///< by bytes that are copied more or less, then by name
};

/// Precondition: both pass check_structure. Errors: as planned_problem's, of the plan that is
/// named.
[[nodiscard]] Result<PlanComparison> compare_plans(const Plan& before, const Plan& after);

}  // namespace stowage
