// step_hash: a hash of a sized step, by which a reader of a plan can tell whether a step is the one
// that the plan was made for.
#pragma once

#include <string>

#include "estimator/memory/sized_step.hpp"

namespace stowage {

/// The hash (base/hash.hpp) of the graph as a step file has it, and of its sizes at the batch. Not
/// hashed: the origins' places, which change with a comment in the description, and workspaces,
/// which depend on the WorkspaceSource.
[[nodiscard]] std::string step_hash(const SizedStep& step);

}  // namespace stowage
