// batch --of: the largest number of users, context length or sequence length that fits.
#pragma once

#include "cli/command.hpp"
#include "cli/request.hpp"

namespace stowage {

/// Precondition: request.of.
[[nodiscard]] Result<Answer> largest_of(const BatchRequest& request);

}  // namespace stowage
