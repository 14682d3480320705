#include "answers/sizing/lower.hpp"

#include <fmt/format.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "answers/subject/asked_step.hpp"
#include "answers/subject/notes.hpp"
#include "estimator/card/card_file.hpp"
#include "estimator/document/check_step_graph.hpp"
#include "estimator/memory/sized_step.hpp"

namespace stowage {

namespace {

Diagnostic note(std::string text) {
  return {.severity = Severity::note, .message = std::move(text)};
}

Result<AskedCard> card_or_generic(const LowerQuestion& question) {
  if (question.card) return find_asked_card(*question.card);
  constexpr Bytes any_total = 24_GiB;  // of a card only the compute capability matters
  AskedCard card{.card = generic_card(any_total)};
  if (traits(kernel_set_of(question.runtime)).dispatches_by_card) {
    card.notes.push_back(
        note(fmt::format("no card was named: the step is for compute capability {:.1f}",
                         card.card.compute_capability)));
  }
  return card;
}

/// What every reader of a step's file refuses is a mistake of the lowering, and no user's.
void expect_readable(const StepDocument& document) {
  for (const StepGraph* const graph : {document.graph.get(), document.evaluation.get()}) {
    if (graph == nullptr) continue;
    const auto found = step_graph_problem(*graph, document.parameters, std::nullopt);
    if (found) throw std::logic_error("a step was lowered that cannot be read: " + found->message);
  }
}

/// As `check` sizes it.
Result<void> expect_sizable(const StepDocument& document, std::int64_t batch) {
  const auto graph = sizing_step(document);
  if (!graph) return tl::unexpected(graph.error());
  const auto sized = size_storages(*graph, batch);
  if (!sized) return tl::unexpected(sized.error());
  return {};
}

}  // namespace

Result<LowerAnswer> answer(const LowerQuestion& question) {
  auto model = read_asked_model(question.model);
  if (!model) return tl::unexpected(std::move(model.error()));
  const auto card = card_or_generic(question);
  if (!card) return tl::unexpected(card.error());
  const bool has_pins = !model->graph.pins.empty();
  const StepQuestion step{
      .model = question.model, .wishes = question.wishes, .process = {.runtime = question.runtime}};
  auto asked = make_asked_step(
      {.model = std::make_shared<const AskedModel>(*std::move(model)), .document = nullptr}, step,
      *card, {});
  if (!asked) return tl::unexpected(std::move(asked.error()));
  StepDocument document = std::move(asked->document);
  document.written_by = question.written_by;
  document.batch = question.batch;
  if (auto sized = expect_sizable(document, question.batch.value_or(1)); !sized) {
    return tl::unexpected(std::move(sized.error()));
  }
  expect_readable(document);

  Diagnostics notes = document.warnings;
  append_notes(notes, card->notes);
  if (has_pins) {
    notes.push_back(
        note("the description's 'pins' are about plans, and a step file does not keep them: plan "
             "takes them as `pin`"));
  }
  return LowerAnswer{std::move(document), std::move(notes)};
}

}  // namespace stowage
