// The tables of serving and of batch --of: a row a model and a card.
//
// batch --of searches for all cards in rounds: in each one every search that is not at its end
// names the value that it asks about next, and each of these is sized once for all cards that ask.
#pragma once

#include "cli/command.hpp"
#include "cli/request.hpp"

namespace stowage {

/// check --context-length of several cards or models. Precondition: request.serving. Exit code and
/// errors: as compare's.
[[nodiscard]] Result<Answer> compare_serving(const CheckRequest& request);

/// batch --of of several cards or models. Precondition: request.of.
[[nodiscard]] Result<Answer> compare_largest(const BatchRequest& request);

}  // namespace stowage
