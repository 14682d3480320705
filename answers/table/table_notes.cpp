#include "answers/table/table_notes.hpp"

#include <utility>

#include "answers/subject/notes.hpp"

namespace stowage {

Diagnostics table_notes(const TableAnswer& table, const std::vector<NotesOfModel>& on_steps,
                        const std::vector<AskedCard>& cards, Diagnostics on_workspaces) {
  std::vector<NotesOfModel> by_model;
  for (const TableRow& row : table.rows) {
    if (!row.mistakes.empty()) by_model.push_back({row.model, row.mistakes});
  }
  by_model.insert(by_model.end(), on_steps.begin(), on_steps.end());
  Diagnostics notes = compared_notes(by_model, table.models);
  for (const AskedCard& card : cards) append_notes(notes, card.notes);
  append_notes(notes, std::move(on_workspaces));
  return notes;
}

}  // namespace stowage
