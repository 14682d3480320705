#include "answers/sizing/largest_value.hpp"

#include <memory>
#include <utility>

#include "answers/sizing/sized_values.hpp"
#include "answers/subject/notes.hpp"
#include "answers/subject/process_settings.hpp"
#include "answers/subject/workspaces.hpp"

namespace stowage {

SearchedQuantity searched_quantity(LargestOf of) {
  switch (of) {
    case LargestOf::users:
      return {"users", "number of users"};
    case LargestOf::context_length:
      return {"context_length", "context length"};
    case LargestOf::seq:
      return {"seq", "sequence length"};
  }
  return {};
}

Verdict LargestValueAnswer::verdict() const {
  for (const auto* at : {&found.at_recommended, &found.at_largest, &found.at_one}) {
    if (*at) return {(*at)->fits, (*at)->device_bytes, (*at)->available, (*at)->headroom};
  }
  return {.fits = found.largest.value > 0};
}

namespace {

std::int64_t batch_of(const LargestValueQuestion& question, const FoundValues& found) {
  if (question.of == LargestOf::seq) return question.batch.value_or(1);
  if (question.of == LargestOf::context_length) return question.serving->users;
  return found.recommended.value;
}

}  // namespace

Result<LargestValueAnswer> answer(const LargestValueQuestion& question) {
  const auto card = find_asked_card(question.card);
  if (!card) return tl::unexpected(card.error());
  const Runtime runtime = question.step.process.runtime_or_usual();
  const auto settings = process_settings(question.step, runtime, *card);
  if (!settings) return tl::unexpected(settings.error());
  const Workspaces workspaces =
      Workspaces::of_cudnn(card->card, runtime, question.step.keep_answers);
  const auto sizes = sizes_of_values(question, *card, workspaces.source());
  if (!sizes) return tl::unexpected(sizes.error());
  const RunAt run = [&](std::int64_t value) {
    return sizes->at(value).map([&](const std::shared_ptr<const SizedSteps>& sized) {
      return run_of_steps(*sized, card->card, *settings);
    });
  };
  NeedsByValue needs;
  auto found = search_values(run, question.margin, needs);
  if (!found) return tl::unexpected(std::move(found.error()));
  return LargestValueAnswer{.of = question.of,
                            .step = sizes->facts->step,
                            .batch = batch_of(question, *found),
                            .card = card->card,
                            .settings = *settings,
                            .found = *std::move(found),
                            .notes = gathered_notes(sizes->facts->warnings, *card, workspaces)};
}

}  // namespace stowage
