#include "answers/subject/asked_card.hpp"

#include <fmt/format.h>

#include <utility>

#include "answers/question/question_error.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/card/card_file.hpp"
#include "gpu_probe/device/present_card.hpp"

namespace stowage {

namespace {

constexpr double usual_capability = 8.6;

Card named_generic_card(const CardQuestion& question, double capability) {
  const Bytes total = *question.cuda_total;
  Card card = generic_card(total, capability);
  card.total_source = question.total_source;
  if (capability != usual_capability) {
    card.name =
        fmt::format("a generic {} card of compute capability {}", format_bytes(total), capability);
  }
  return card;
}

Diagnostic note(std::string text) {
  return {.severity = Severity::note, .message = std::move(text)};
}

Result<AskedCard> card_of_this_machine(const CardQuestion& question) {
  auto present = present_card(probe_gpus(), question.configs.gpus());
  if (!present) return tl::unexpected(std::move(present.error()));
  AskedCard asked{.card = std::move(present->card), .in_use = present->in_use};
  asked.notes.push_back(note(fmt::format("this machine's {}: {} of it free", asked.card.name,
                                         format_bytes(asked.card.cuda_total - present->in_use))));
  if (!present->note.empty()) asked.notes.push_back(note(std::move(present->note)));
  if (question.cuda_total) asked.card.cuda_total = *question.cuda_total;
  return asked;
}

Result<AskedCard> uncalibrated_card(const CardQuestion& question) {
  AskedCard asked;
  if (question.name.empty()) {
    const double capability = question.compute_capability.value_or(usual_capability);
    asked.card = named_generic_card(question, capability);
    asked.notes.push_back(
        note(fmt::format("taken for a generic card of {} with compute capability {:.1f}; "
                         "`gpu` NAME takes a real one",
                         format_bytes(*question.cuda_total), capability)));
    return asked;
  }
  if (question.name == present_name) return card_of_this_machine(question);
  auto found = find_card(question.name, question.configs.gpus(), question.cuda_total);
  if (!found) return tl::unexpected(std::move(found.error()));
  asked.card = std::move(found->card);
  if (!found->note.empty()) asked.notes.push_back(note(std::move(found->note)));
  if (question.cuda_total) asked.card.cuda_total = *question.cuda_total;
  return asked;
}

}  // namespace

Result<AskedCard> find_asked_card(const CardQuestion& question) {
  auto asked = uncalibrated_card(question);
  if (!asked) return asked;
  if (!question.calibration.empty()) {
    const auto source = read_source(question.calibration, FileKind::calibration);
    if (!source) return tl::unexpected(source.error());
    auto calibrated = read_calibration(*source, asked->card);
    if (!calibrated) return tl::unexpected(std::move(calibrated.error()));
    asked->card = *std::move(calibrated);
  }
  if (!question.cuda_total) {
    for (std::string& remark : remarks_on(asked->card)) {
      asked->notes.push_back(note(std::move(remark)));
    }
  }
  return asked;
}

}  // namespace stowage
