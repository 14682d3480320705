#include "answers/subject/notes.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "estimator/step/foreign_kernels.hpp"

namespace stowage {

void append_notes(Diagnostics& notes, Diagnostics more) {
  std::ranges::move(more, std::back_inserter(notes));
}

Diagnostics notes_on_step(const StepDocument& document) {
  Diagnostics notes = document.warnings;
  append_notes(notes, misspelt_kernels(*document.graph));
  return notes;
}

Diagnostics gathered_notes(Diagnostics on_step, const AskedCard& card,
                           const Workspaces& workspaces) {
  append_notes(on_step, card.notes);
  append_notes(on_step, workspaces.notes());
  return on_step;
}

}  // namespace stowage
