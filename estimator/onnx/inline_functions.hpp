// Model-local functions, put in the place of their calls.
#pragma once

#include "estimator/onnx/onnx_file.hpp"

namespace stowage {

/// Names within a body get the call's number, so that none meets another. Throws BrokenFile: a
/// function that calls itself, or more than most_onnx_nodes nodes.
void inline_functions(OnnxFile& file);

}  // namespace stowage
