// A model whose result is cast before its losses read it: MixedPrecisionPolicy.output_dtype of
// PyTorch's fully_shard, which the root applies to what its module returns.
#pragma once

#include "estimator/base/data_type.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

/// The cast is an operator "output_cast" behind all others but the losses. A result that has the
/// format already is left as it is. Errors: a model that computes its loss itself, whose result is
/// cast only after that; one that returns no floating-point numbers.
[[nodiscard]] Result<ModelGraph> with_cast_output(ModelGraph model, DataType type);

}  // namespace stowage
