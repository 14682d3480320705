#include <stowage/largest_batch.hpp>

#include "answers/library/messages.hpp"
#include "answers/library/questions.hpp"
#include "answers/sizing/batch.hpp"

namespace stowage {

Answered<LargestBatchAnswer> ask(const LargestBatchQuestion& question) {
  if (const auto mistake = below_zero("margin", question.margin_bytes)) return refused({*mistake});
  const auto step = step_question(question.step);
  if (!step) return refused(step.error());
  const auto card = card_question(question.gpu, step->model.configs);
  if (!card) return refused(card.error());
  BatchQuestion asked{.step = *step, .card = *card};
  if (question.margin_bytes) asked.margin = Bytes(*question.margin_bytes);
  const auto found = answer(asked);
  if (!found) return refused(found.error());
  const BatchReport& report = found->report;
  const auto device_bytes = [](const std::optional<CheckReport>& at) {
    return at ? at->device_bytes.count() : 0;
  };
  LargestBatchAnswer largest{.largest = report.largest,
                             .recommended = report.recommended,
                             .largest_device_bytes = device_bytes(report.at_largest),
                             .recommended_device_bytes = device_bytes(report.at_recommended),
                             .available_bytes = found->verdict().available_bytes.count(),
                             .margin_bytes = report.margin.count(),
                             .keeps_margin = report.keeps_margin,
                             .unlimited = report.unlimited,
                             .notes = messages_of(found->notes)};
  for (const CurvePoint& point : report.curve) {
    largest.curve.push_back({point.batch, point.device_bytes.count()});
  }
  return largest;
}

}  // namespace stowage
