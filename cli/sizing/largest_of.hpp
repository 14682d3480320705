// batch --of: the largest number of users, context length or sequence length that fits.
#pragma once

#include "cli/options/command.hpp"
#include "cli/options/request.hpp"

namespace stowage {

/// Precondition: request.of.
[[nodiscard]] Result<Answer> largest_of(const BatchRequest& request);

}  // namespace stowage
