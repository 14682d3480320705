// The options of the process around a step: runtime, allocator, TensorFlow's pools, software.
#pragma once

#include "cli/arguments.hpp"
#include "cli/request.hpp"

namespace stowage {

/// `fallback`: the runtime where none is given.
/// Errors: a version that is none; allocator settings with mistakes; options of another runtime;
/// those of TensorFlow's that exclude or want each other.
[[nodiscard]] Result<ProcessRequest> read_process_request(const Arguments& arguments,
                                                          Runtime fallback);

}  // namespace stowage
