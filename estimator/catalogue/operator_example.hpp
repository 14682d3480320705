// A small example of each operator as lines of a description. `stowage ops NAME` shows it, and
// operator_kernels.hpp lowers it to list the operator's kernels.
#pragma once

#include <string>
#include <string_view>

#include "estimator/model/operator_row.hpp"

namespace stowage {

/// Lines of `layers:`, or of `loss:` for a loss, each ended by a newline. They read `stem`, a layer
/// whose result needs a gradient; losses read `head`, [batch, 3], and the inputs `numbers`, of that
/// shape, or `classes`, [batch]. "": the row has no example (a test ensures that every catalogue
/// row has one).
[[nodiscard]] std::string_view example_lines(const OperatorRow& row);

/// A whole description with the example in it, whose step trains. Precondition: the row has an
/// example.
[[nodiscard]] std::string example_description(const OperatorRow& row);

}  // namespace stowage
