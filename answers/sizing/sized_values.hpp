// The steps of a quantity's values (users, context length, sequence length), value by value.
#pragma once

#include <memory>

#include "answers/sizing/largest_value.hpp"
#include "answers/sizing/value_search.hpp"
#include "answers/subject/asked_card.hpp"
#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

/// What is known of the steps once a value has been sized.
struct StepFacts {
  StepSummary step;  ///< of serving: of the decode pass
  Diagnostics warnings;
};

struct SizedValues {
  SizedAt at;  ///< a value's steps; its errors: of the model at it
  std::shared_ptr<const StepFacts> facts;
};

/// The steps with so many users, or so long a context or sequence, for the kernels of `card`; what
/// is returned keeps references to `question` and `workspaces`. Errors: as served_model's.
[[nodiscard]] Result<SizedValues> sizes_of_values(const LargestValueQuestion& question,
                                                  const AskedCard& card,
                                                  WorkspaceSource& workspaces);

}  // namespace stowage
