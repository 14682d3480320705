// How users name what a step has: layers, scopes of layers, kernels and storages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Neither a kernel's own scratch nor its temporaries, which are where it runs.
[[nodiscard]] bool has_a_place(const Storage& storage);

/// "conv1.forward" of "conv1.forward@3": all micro-batches have one name.
[[nodiscard]] std::string_view without_micro_batch(std::string_view name);

/// "relu1.forward" of "relu1.forward.recomputed~2": what is made again has the name of the first.
[[nodiscard]] std::string_view as_made_first(std::string_view name);

/// Whether a node's or a storage's name fits a pattern, in whichever micro-batch, and made again.
[[nodiscard]] bool fits_name(std::string_view pattern, std::string_view name);

/// Whether a layer fits a scope: "encoder.*", by its path; "encoder", also all below it.
[[nodiscard]] bool holds_layer(std::string_view scope, std::string_view layer);

/// Layers, the scopes that they stand in, nodes and storages that have a place: sorted, each once.
[[nodiscard]] std::vector<std::string> names_in(const StepGraph& step);

}  // namespace stowage
