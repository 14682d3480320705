#include "answers/sizing/lower.hpp"

#include <fmt/format.h>

#include <utility>

#include "answers/subject/asked_step.hpp"
#include "answers/subject/notes.hpp"
#include "estimator/card/card_file.hpp"
#include "estimator/document/make_document.hpp"
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

}  // namespace

Result<LowerAnswer> answer(const LowerQuestion& question) {
  const auto model = read_asked_model(question.model);
  if (!model) return tl::unexpected(model.error());
  const auto card = card_or_generic(question);
  if (!card) return tl::unexpected(card.error());
  const auto chosen = choose_kernels(question.wishes, model->graph, question.runtime, card->card);
  if (!chosen) return tl::unexpected(chosen.error());
  auto document = make_document(model->graph, *chosen, question.runtime, model->options.seq);
  if (!document) return tl::unexpected(std::move(document.error()));
  document->written_by = question.written_by;
  document->batch = question.batch;
  const auto sized = size_storages(document->graph, question.batch.value_or(1));
  if (question.batch && !sized) return tl::unexpected(sized.error());

  Diagnostics notes = document->warnings;
  append_notes(notes, card->notes);
  if (!model->graph.pins.empty()) {
    notes.push_back(
        note("the description's 'pins' are about plans, and a step file does not keep them: plan "
             "takes them as `pin`"));
  }
  return LowerAnswer{*std::move(document), std::move(notes)};
}

}  // namespace stowage
