// The steps of `batch --of` and of `check --context-length`, value by value.
#pragma once

#include <string_view>

#include "cli/options/request.hpp"
#include "cli/requested/requested_step.hpp"
#include "cli/sizing/value_search.hpp"
#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

/// What is looked for, in words.
struct Sought {
  std::string_view option;  ///< "context-length"
  std::string_view noun;    ///< "context length"
};
[[nodiscard]] Sought sought(LargestOf of);

/// The steps with so many users, or so long a context or sequence, for the kernels of `card`; what
/// is returned keeps references to `request` and `workspaces`. A value's errors: of the model at
/// it. Errors: as served_model's.
[[nodiscard]] Result<SizedAt> sizes_of_values(const BatchRequest& request,
                                              const RequestedCard& card,
                                              WorkspaceSource& workspaces);

}  // namespace stowage
