// compare_plans: the differences between two plans: devices and engines of nodes, places and copies
// of storages.
//
// Nodes and storages are matched by name: of two steps that differ, what both have is compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "planner/explain/planned_problem.hpp"

namespace stowage {

/// The side and the engine of a node in one plan.
struct NodePlace {
  Device device = Device::gpu;
  bool beside_gpu = false;  ///< on the CPU, while nodes of the GPU run
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
  bool same_step = false;              ///< the hashes of the steps are equal
  std::int64_t compared_nodes = 0;     ///< nodes that both plans have
  std::int64_t compared_storages = 0;  ///< storages that both plans have
  std::int64_t nodes_only_before = 0, nodes_only_after = 0;
  std::int64_t storages_only_before = 0, storages_only_after = 0;
  std::vector<NodeChange> nodes;        ///< in the first plan's order
  std::vector<StorageChange> storages;  ///< by the change of copied bytes, then by name
};

/// Precondition: both pass check_structure. Errors: as planned_problem's; the message names the
/// plan.
[[nodiscard]] Result<PlanComparison> compare_plans(const Plan& before, const Plan& after);

}  // namespace stowage
