// Which operators of a model the names of a setting mean.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

/// A fully connected layer, of whatever weights.
[[nodiscard]] bool is_linear(const Operator& op);

/// The linear layer whose result the model returns, maybe under another shape or format: what
/// transformers calls the output embeddings. None: there is none.
[[nodiscard]] OperatorId output_layer(const ModelGraph& model);

/// By operator: is it meant? `suits` says of an operator whether it may be, `what` what it does
/// ("takes an adapter"). Operators that do not suit are passed over where others are meant by the
/// same name. Errors: a name that means nothing, with near ones, or nothing that suits.
[[nodiscard]] Result<std::vector<bool>> named_layers(const ModelGraph& model,
                                                     std::span<const std::string> names,
                                                     bool (*suits)(const Operator& op),
                                                     std::string_view what);

}  // namespace stowage
