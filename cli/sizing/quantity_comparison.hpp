// Serving, and the largest of a quantity, on several cards or of several models: one table.
//
// Cards of one compute capability run the same steps, so that a value's steps are lowered and sized
// once for all of them, by the documented rule of workspaces; each card runs them by itself. A
// search begins where the needs of cards before it say that the room ends. So where the fit is not
// monotone (a larger value may fit by chance) a row may name another limit than the command for
// that card alone; each value that it names has been run.
#pragma once

#include "cli/options/command.hpp"
#include "cli/options/request.hpp"

namespace stowage {

/// check with --context-length. Exit codes as compare's (comparison.hpp).
[[nodiscard]] Result<Answer> compare_serving(const CheckRequest& request);
/// batch with --of.
[[nodiscard]] Result<Answer> compare_largest(const BatchRequest& request);

}  // namespace stowage
