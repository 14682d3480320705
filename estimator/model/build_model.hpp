// Builds a ModelGraph from expanded operators: execution order, shapes and parameters by the
// catalogue's rules, tied parameters, the loss.
#pragma once

#include "estimator/model/expand.hpp"
#include "estimator/model/model_description.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/text/mistakes.hpp"

namespace stowage {

/// The graph is complete only if no mistake was reported. Operators that depend on an unknown shape
/// are skipped without a message.
[[nodiscard]] ModelGraph build_model(const ModelDescription& description, ExpandedModel expanded,
                                     Mistakes& mistakes);

/// Replaces the parameters of layers with `tie:` by the ones that they share. `sources`: the
/// expanded operators in the order of the model's operators.
void tie_parameters(std::span<const ExpandedOperator* const> sources, ModelGraph& model,
                    Mistakes& mistakes);

/// Renames parameters as `parameter_names:` says. A tied one keeps its owner's name. Call it after
/// tie_parameters(), which finds parameters by their original names.
void name_parameters(std::span<const ExpandedOperator* const> sources, ModelGraph& model,
                     Mistakes& mistakes);

}  // namespace stowage
