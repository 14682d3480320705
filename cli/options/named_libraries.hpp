// The options that say where NVIDIA's libraries lie.
#pragma once

#include "cli/options/arguments.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// From now on the libraries are looked for where the options say. Before the first question only.
/// Errors: there is none of them.
[[nodiscard]] Result<void> use_named_libraries(const Arguments& arguments);

}  // namespace stowage
