// How a table of models and cards is shown: a row a model and a card, and a line a model.
#pragma once

#include "answers/table/table.hpp"
#include "cli/output/rendered_answer.hpp"

namespace stowage {

/// Exit code: `bad_input` where a row has no answer; else `yes` where every model fits at least one
/// of the cards, and `clean_no` where one fits none.
[[nodiscard]] RenderedAnswer rendered(const TableAnswer& found);

}  // namespace stowage
