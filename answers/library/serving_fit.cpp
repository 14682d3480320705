#include <fmt/format.h>

#include <stowage/serving_fit.hpp>
#include <utility>

#include "answers/library/memory_peaks.hpp"
#include "answers/library/messages.hpp"
#include "answers/library/questions.hpp"
#include "answers/question/question_error.hpp"
#include "answers/sizing/serving.hpp"
#include "answers/sizing/serving_cache.hpp"

namespace stowage {

namespace {

Result<ServingSettings> serving_settings(const ServingFitQuestion& question) {
  for (const auto& [field, value] :
       {std::pair("context_length", std::optional(question.context_length)),
        std::pair("users", std::optional(question.users)),
        std::pair("prefill_chunk", question.prefill_chunk)}) {
    if (auto mistake = out_of_range(field, value)) return failure(*std::move(mistake));
  }
  ServingSettings settings{.context_length = question.context_length,
                           .users = question.users,
                           .cache_is_default = question.cache.empty(),
                           .prefill_chunk = question.prefill_chunk};
  if (!question.cache.empty()) {
    const auto kind = find_cache_kind(question.cache);
    if (!kind) {
      return failure(question_error(fmt::format(
          "`cache` '{}' is none of paged, dynamic, static and quantized", question.cache)));
    }
    settings.cache = *kind;
  }
  if (!question.kv_format.empty()) {
    const auto format = find_cache_format(question.kv_format);
    if (!format) {
      return failure(question_error(
          fmt::format("`kv_dtype` '{}' is none that a cache has", question.kv_format)));
    }
    settings.format = *format;
  }
  return with_suitable_cache(settings);
}

}  // namespace

Answered<ServingFitAnswer> ask(const ServingFitQuestion& question) {
  const auto settings = serving_settings(question);
  if (!settings) return refused(settings.error());
  const auto step = step_question(question.step);
  if (!step) return refused(step.error());
  const auto card = card_question(question.gpu, step->model.configs);
  if (!card) return refused(card.error());
  const auto found = answer(ServingQuestion{*step, *card, *settings});
  if (!found) return refused(found.error());
  const Footprint& decode = found->decode.report.footprint;
  return ServingFitAnswer{
      .fits = found->fits(),
      .device_bytes = found->larger().report.device_bytes.count(),
      .cache_bytes = decode.by_class[static_cast<std::size_t>(StorageClass::kv_cache)].count(),
      .cache = std::string(to_string(found->serving.cache)),
      .prefill = memory_peak(found->prefill.report, found->card),
      .decode = memory_peak(found->decode.report, found->card),
      .notes = messages_of(found->notes)};
}

}  // namespace stowage
