// A small example of each operator, as a description has it: what `stowage ops NAME` shows, and
// what it is lowered from where its kernels are listed (catalogue/operator_kernels.hpp).
#pragma once

#include <string>
#include <string_view>

#include "estimator/model/operator_row.hpp"

namespace stowage {

/// Lines of `layers:`, or of `loss:` for a loss, each ended by '\n'. They read `stem`, a layer
/// whose result needs a gradient; losses read `head`, [batch, 3], and the inputs `numbers`, of that
/// shape, or `classes`, [batch]. "" where the catalogue has a row without an example (a test sees
/// to it that there is none).
[[nodiscard]] std::string_view example_lines(const OperatorRow& row);

/// A whole description around the example, which trains. Precondition: the row has an example.
[[nodiscard]] std::string example_description(const OperatorRow& row);

}  // namespace stowage
