// From expanded operators to a ModelGraph: the order of execution, shapes and parameters by the
// catalogue's rules, tied parameters, the loss.
#pragma once

#include "estimator/model/expand.hpp"
#include "estimator/model/model_description.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/text/mistakes.hpp"

namespace stowage {

/// Complete where nothing was reported; else to be dropped. An operator behind one whose shape is
/// unknown is passed over in silence.
[[nodiscard]] ModelGraph build_model(const ModelDescription& description, ExpandedModel expanded,
                                     Mistakes& mistakes);

/// Binds the parameters of layers with `tie:` to those that they share. `sources` are the expanded
/// operators in the order of the model's operators.
void tie_parameters(std::span<const ExpandedOperator* const> sources, ModelGraph& model,
                    Mistakes& mistakes);

/// Gives parameters the names that `parameter_names:` has for them. A tied one keeps its owner's.
/// After tie_parameters, which finds parameters by the names that they have before.
void name_parameters(std::span<const ExpandedOperator* const> sources, ModelGraph& model,
                     Mistakes& mistakes);

}  // namespace stowage
