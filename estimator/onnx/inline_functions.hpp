// Inlines calls of model-local functions.
#pragma once

#include "estimator/onnx/onnx_file.hpp"

namespace stowage {

/// Names within a body get the number of the call, which makes them unique. Throws BrokenFile: a
/// function calls itself, or there would be more than most_onnx_nodes nodes, or, in the bodies that
/// are written out, more than most_onnx_values names and numbers.
void inline_functions(OnnxFile& file);

}  // namespace stowage
