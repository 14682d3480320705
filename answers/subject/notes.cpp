#include "answers/subject/notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "estimator/base/grouped_digits.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "estimator/recorded/missing_update.hpp"
#include "estimator/step/foreign_kernels.hpp"

namespace stowage {

void append_notes(Diagnostics& notes, Diagnostics more) {
  std::ranges::move(more, std::back_inserter(notes));
}

namespace {

/// Whether two settings of an optimizer keep the same state.
bool keeps_the_same(const OptimizerSettings& one, const OptimizerSettings& other) {
  return one.name == other.name && (one.momentum > 0) == (other.momentum > 0) &&
         one.nesterov == other.nesterov && one.amsgrad == other.amsgrad &&
         one.centered == other.centered;
}

/// A name for `optimizer` that asks for the recorded optimizer's state, or else a usual one.
std::string_view name_to_ask_for(const OptimizerSettings& recorded) {
  for (const std::string_view name : optimizer_names()) {
    const auto named = named_optimizer(name);
    if (recorded != OptimizerSettings{} && named && keeps_the_same(*named, recorded)) return name;
  }
  return "adamw";
}

}  // namespace

Diagnostics notes_on_update(const StepDocument& document) {
  const auto missing = missing_update(document);
  if (!missing) return {};
  const std::string_view optimizer =
      name_to_ask_for(missing->is_whole ? document.graph->settings.optimizer : OptimizerSettings{});
  const bool one = missing->parameters == 1;
  return {
      {.severity = Severity::warning,
       .message = fmt::format(
           "the step has no update of {} trained parameter{} ({}): no optimizer ran for {} when "
           "the step was recorded, so the optimizer's state and temporaries are not counted",
           grouped_digits(missing->parameters), one ? "" : "s", format_bytes(missing->bytes),
           one ? "it" : "them"),
       .hint = fmt::format("check, batch and plan take `optimizer` {}, which adds them; or "
                           "record a function that calls optimizer.step()",
                           optimizer)}};
}

Diagnostics notes_on_step(const StepDocument& document) {
  Diagnostics notes = document.warnings;
  append_notes(notes, notes_on_update(document));
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
