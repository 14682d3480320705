// step_hash: a fingerprint of a sized step, so that who reads a plan can tell whether lowering the
// same description gives the step that the plan was made for.
#pragma once

#include <string>

#include "estimator/memory/sized_step.hpp"

namespace stowage {

/// The hash (base/hash.hpp) of every storage's name, class and bytes and of every node's name,
/// kernel and arguments, in order. Workspaces are left out: they depend on who is asked.
[[nodiscard]] std::string step_hash(const SizedStep& step);

}  // namespace stowage
