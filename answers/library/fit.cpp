#include <stowage/fit.hpp>

#include "answers/library/memory_peaks.hpp"
#include "answers/library/messages.hpp"
#include "answers/library/questions.hpp"
#include "answers/sizing/check.hpp"

namespace stowage {

Answered<FitAnswer> ask(const FitQuestion& question) {
  if (const auto mistake = out_of_range("batch", question.batch)) return refused({*mistake});
  const auto step = step_question(question.step);
  if (!step) return refused(step.error());
  const auto card = card_question(question.gpu, step->model.configs);
  if (!card) return refused(card.error());
  const auto found = answer(CheckQuestion{.step = *step, .card = *card, .batch = question.batch});
  if (!found) return refused(found.error());
  FitAnswer fit{.fits = found->report.fits,
                .batch = found->batch,
                .peak = memory_peak(found->report, found->card),
                .notes = messages_of(found->notes)};
  if (found->cures) fit.largest_batch = found->cures->largest.batch;
  return fit;
}

}  // namespace stowage
