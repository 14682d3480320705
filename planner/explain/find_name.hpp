// find_name: the nodes and storages that a name refers to in a plan: a kernel, a storage, a layer,
// or a scope of layers.
#pragma once

#include <string_view>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

struct NamedParts {
  bool is_scope = false;            ///< one or more layers, not a single kernel or storage
  std::vector<NodeId> nodes;        ///< ascending
  std::vector<StorageId> storages;  ///< ascending; only storages that plans place
};

/// Looks for a layer's path or a scope ("encoder", "encoder.*") first, then for a kernel's or a
/// storage's name. In a step of several micro-batches "conv1.forward" means the kernels of all of
/// them. An update belongs to the layer of the parameters that it updates. Errors: nothing has the
/// name, with a suggestion.
[[nodiscard]] Result<NamedParts> find_name(const Plan& plan, std::string_view name);

}  // namespace stowage
