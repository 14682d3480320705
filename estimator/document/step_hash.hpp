// step_hash: a fingerprint of a sized step, so that who reads a plan can tell whether a step is the
// one that the plan was made for.
#pragma once

#include <string>

#include "estimator/memory/sized_step.hpp"

namespace stowage {

/// The hash (base/hash.hpp) of all that a step file holds of the graph, and of its sizes at the
/// batch. Left out are the origins' places, which change with a comment in the description, and
/// workspaces, which depend on who is asked.
[[nodiscard]] std::string step_hash(const SizedStep& step);

}  // namespace stowage
