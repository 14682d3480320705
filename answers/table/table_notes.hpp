// What is to be said beside a table, gathered from its rows, steps, cards and workspaces.
#pragma once

#include <vector>

#include "answers/subject/asked_card.hpp"
#include "answers/table/compared_notes.hpp"
#include "answers/table/table.hpp"

namespace stowage {

/// First the mistakes of rows and the notes on steps, as compared_notes merges them; then those on
/// the cards; then those on the workspaces.
[[nodiscard]] Diagnostics table_notes(const TableAnswer& table,
                                      const std::vector<NotesOfModel>& on_steps,
                                      const std::vector<AskedCard>& cards,
                                      Diagnostics on_workspaces);

}  // namespace stowage
