// Finds the operators that the layer names of a fine-tuning setting mean.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

/// Whether it is a fully connected layer, with plain or quantised weights.
[[nodiscard]] bool is_linear(const Operator& op);

/// The linear layer whose result the model returns, possibly reshaped or cast: transformers' output
/// embeddings. Invalid id: there is none.
[[nodiscard]] OperatorId output_layer(const ModelGraph& model);

/// For each operator, whether one of `names` means it. `suits` says whether an operator may be
/// meant, and `what` describes such operators in messages ("takes an adapter"). If a name means
/// several operators, those that do not suit are skipped. Errors: a name that means no operator
/// (with similar names), or none that suits.
[[nodiscard]] Result<std::vector<bool>> named_layers(const ModelGraph& model,
                                                     std::span<const std::string> names,
                                                     bool (*suits)(const Operator& op),
                                                     std::string_view what);

}  // namespace stowage
