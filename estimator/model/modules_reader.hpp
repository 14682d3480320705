// Reads the `modules:` of a scope: groups of layers that the implementation calls as one module,
// but that have no block in the description.
//
//   modules: {rest: [attended, sum], mlp: [fc1, fc2], layers: each}
//
// `mlp` contains the layers from fc1 to fc2. A list of one names a single layer. `rest` is written
// before `mlp` and contains it. The repeated layer `layers` (of `repeat`) is called in a loop, one
// by one, as in a torch.nn.ModuleList; other repeated layers are one module, as a
// torch.nn.Sequential.
//
// A module call holds its arguments until it returns (rewrite/module_inputs.hpp). Names of layers
// do not change.
#pragma once

#include "estimator/model/model_description.hpp"
#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

/// Sets `module` and `called_one_by_one` of the scope's layers. Precondition: the layers have their
/// names.
void read_modules(const YamlNode& node, Scope& scope, Mistakes& mistakes);

}  // namespace stowage
