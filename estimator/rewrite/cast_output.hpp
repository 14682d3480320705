// Adds a cast of a model's result before its losses read it: MixedPrecisionPolicy.output_dtype of
// PyTorch's fully_shard, which the root applies to its module's result.
#pragma once

#include "estimator/base/data_type.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

/// The cast is an operator "output_cast" after all others except the losses. There is none if the
/// result already has the format. Errors: a model that computes its loss itself, since its result
/// is cast only after that; one that does not return floating-point numbers.
[[nodiscard]] Result<ModelGraph> with_cast_output(ModelGraph model, DataType type);

}  // namespace stowage
