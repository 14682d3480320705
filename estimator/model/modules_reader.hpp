// The `modules:` of a scope: what the implementation calls as a module though it has no block here.
//
//   modules: {rest: [attended, sum], mlp: [fc1, fc2], layers: each}
//
// `mlp` is the layers from fc1 to fc2. A list of one is that layer alone. `rest` is written before
// `mlp`, and has it within. The chain `layers` (of `repeat`) is called by a loop, one by one, as
// those of torch.nn.ModuleList are; any other is a module as a whole, as torch.nn.Sequential is.
//
// A module holds what it is called with until it returns (rewrite/module_inputs.hpp). Names of
// layers do not change.
#pragma once

#include "estimator/model/model_description.hpp"
#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

/// Sets `module` and `called_each` of the scope's layers, which have their names.
void read_modules(const YamlNode& node, Scope& scope, Mistakes& mistakes);

}  // namespace stowage
