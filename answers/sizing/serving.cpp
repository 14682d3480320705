#include "answers/sizing/serving.hpp"

#include <utility>

#include "answers/sizing/serving_sizes.hpp"
#include "answers/subject/notes.hpp"
#include "answers/subject/workspaces.hpp"

namespace stowage {

namespace {

CheckedPass check_pass(const SizedPass& pass, const ServedModel& served) {
  return {.batch = pass.batch,
          .tokens = pass.tokens,
          .past = pass.past,
          .encoded = pass.encoded,
          .report = check(pass.step, served.card.card, served.settings)};
}

}  // namespace

const CheckedPass& ServingAnswer::larger() const {
  return prefill.report.device_bytes > decode.report.device_bytes ? prefill : decode;
}

const CheckedPass& ServingAnswer::deciding() const {
  if (fits()) return larger();
  return prefill.report.fits ? decode : prefill;
}

Result<ServingAnswer> answer(const ServingQuestion& question) {
  const auto card = find_asked_card(question.card);
  if (!card) return tl::unexpected(card.error());
  const auto usual = with_usual_cache(question.settings, question.step);
  if (!usual) return tl::unexpected(usual.error());
  const auto served = served_model(question.step, usual->cache, *card);
  if (!served) return tl::unexpected(served.error());
  const ServingSettings settings = with_usual_chunk(*usual, card->card);
  const Workspaces workspaces =
      Workspaces::of_cudnn(card->card, served->settings.runtime, question.step.keep_answers);
  const auto sized = size_serving(*served, model_at_length(*served), settings, workspaces.source());
  if (!sized) return tl::unexpected(sized.error());
  Diagnostics on_model = served->warnings;
  append_notes(on_model, sized->decode.warnings);
  ServingAnswer found{.card = card->card,
                      .serving = settings,
                      .settings = served->settings,
                      .prefill = check_pass(sized->prefill, *served),
                      .decode = check_pass(sized->decode, *served),
                      .notes = gathered_notes(std::move(on_model), *card, workspaces)};
  found.step = {.model = sized->model,
                .lowering = found.decode.report.footprint.graph->settings,
                .precision = sized->precision};
  return found;
}

}  // namespace stowage
