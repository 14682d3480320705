// Rows of tables about serving, and about the largest value of a quantity.
//
// Cards of one compute capability run the same steps, so that a value's steps are lowered and sized
// once for all of them, by the documented rule of workspaces; each card runs them by itself. A
// search begins where the needs of cards before it say that the room ends. So where the fit is not
// monotone (a larger value may fit by chance) a row may name another limit than the question for
// that card alone; each value that it names has been run.
#pragma once

#include <string>
#include <vector>

#include "answers/subject/asked_card.hpp"
#include "answers/table/table.hpp"

namespace stowage {

/// The rows, serving settings, runtime and notes of a table of TableOfServing or TableOfValues
/// cells.
[[nodiscard]] TableAnswer table_of_quantity(const TableQuestion& question,
                                            const std::vector<std::string>& models,
                                            const std::vector<AskedCard>& cards);

}  // namespace stowage
