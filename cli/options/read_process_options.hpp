// The options of the process around a step: runtime, allocator, TensorFlow's pools, software.
#pragma once

#include "cli/options/arguments.hpp"
#include "cli/options/request.hpp"

namespace stowage {

/// `usual`: the runtime where neither an option nor a step's file says one.
/// Errors: a version that is none; allocator settings with mistakes; TensorFlow's options that
/// exclude or want each other.
[[nodiscard]] Result<ProcessChoice> read_process_options(const Arguments& arguments, Runtime usual);

}  // namespace stowage
