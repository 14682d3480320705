// What a name stands for in a plan: a kernel, a storage, a layer, or a scope of layers.
#pragma once

#include <string_view>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

struct NamedThings {
  bool is_scope = false;            ///< a layer or more, and not one kernel or one storage
  std::vector<NodeId> nodes;        ///< ascending
  std::vector<StorageId> storages;  ///< ascending; those that have a place
};

/// A layer's path or a scope ("encoder", "encoder.*") before a kernel's or a storage's name; of a
/// step of several micro-batches, "conv1.forward" stands for all. An update belongs to the layer of
/// the parameters that it updates. Errors: nothing has the name, with a suggestion.
[[nodiscard]] Result<NamedThings> find_name(const Plan& plan, std::string_view name);

}  // namespace stowage
