// The names by which users refer to parts of a step: layers, scopes of layers, kernels and
// storages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Whether a plan chooses where the storage lies. Workspaces and temporaries lie where their kernel
/// runs.
[[nodiscard]] bool is_placeable(const Storage& storage);

/// "conv1.forward" for "conv1.forward@3": the same kernel of all micro-batches has one name.
[[nodiscard]] std::string_view without_micro_batch(std::string_view name);

/// "relu1.forward" for "relu1.forward.recomputed~2": a second run has the name of the first.
[[nodiscard]] std::string_view without_recompute_suffix(std::string_view name);

/// Whether a node's or a storage's name matches a pattern, in any micro-batch and in any second
/// run.
[[nodiscard]] bool matches_name(std::string_view pattern, std::string_view name);

/// Whether a scope contains a layer. "encoder.*" matches by the path; "encoder" also contains all
/// layers below it.
[[nodiscard]] bool scope_contains_layer(std::string_view scope, std::string_view layer);

/// All names of a step: layers, their scopes, nodes and storages that plans place. Sorted, each
/// once.
[[nodiscard]] std::vector<std::string> names_in(const StepGraph& step);

}  // namespace stowage
