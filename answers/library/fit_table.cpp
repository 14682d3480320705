#include <stowage/fit_table.hpp>

#include "answers/library/messages.hpp"
#include "answers/library/questions.hpp"
#include "answers/table/table.hpp"

namespace stowage {

namespace {

FitTableRow row_of(const TableRow& row) {
  FitTableRow shown{.model = row.model, .gpu = row.card ? row.card->name : ""};
  if (!row.answer) return shown;
  const CardAnswer& answer = *row.answer;
  shown.has_answer = true;
  shown.fits = answer.fits;
  shown.device_bytes = answer.needed.count();
  shown.available_bytes = answer.available.count();
  shown.headroom_bytes = answer.headroom.count();
  shown.at_batch = answer.needed_at;
  shown.largest = answer.largest;
  shown.recommended = answer.recommended;
  return shown;
}

}  // namespace

Answered<FitTableAnswer> ask(const FitTableQuestion& question) {
  if (const auto mistake = out_of_range("batch", question.batch)) return refused({*mistake});
  const auto step = step_question(question.step);
  if (!step) return refused(step.error());
  const auto cards = card_question({.name = question.gpus}, step->model.configs);
  if (!cards) return refused(cards.error());
  const TableCell cell =
      question.batch ? TableCell(TableAtBatch{question.batch}) : TableCell(TableOfBatches{});
  const auto found = answer(
      TableQuestion{.step = *step, .models = question.models, .cards = *cards, .cell = cell});
  if (!found) return refused(found.error());
  FitTableAnswer table{.notes = messages_of(found->notes)};
  for (const TableRow& row : found->rows) table.rows.push_back(row_of(row));
  return table;
}

}  // namespace stowage
