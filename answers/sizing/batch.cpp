#include "answers/sizing/batch.hpp"

#include <fmt/format.h>

#include <utility>

#include "answers/question/question_error.hpp"
#include "answers/subject/replicas.hpp"
#include "answers/subject/step_setup.hpp"
#include "estimator/base/grouped_digits.hpp"

namespace stowage {

namespace {

// Each replica gets an equal share.
BatchReport of_all_replicas(BatchReport report, std::int64_t replicas) {
  for (std::int64_t* batch : {&report.largest, &report.largest_safe, &report.recommended}) {
    *batch *= replicas;
  }
  for (CurvePoint& point : report.curve) point.batch *= replicas;
  return report;
}

}  // namespace

Verdict BatchAnswer::verdict() const {
  for (const auto* at : {&report.at_recommended, &report.at_largest, &report.at_one}) {
    if (*at) return verdict_of(**at);
  }
  return {.available_bytes = card.cuda_total - settings.in_use - settings.reserve};
}

Result<StepSetup> set_up_batch(const BatchQuestion& question, bool costs) {
  DocumentParts parts = step_alone;
  parts.costs = costs;
  return set_up_step(question.step, question.card, parts);
}

Result<BatchAnswer> answer(const BatchQuestion& question) {
  return set_up_batch(question).and_then(
      [&](const StepSetup& setup) { return answer(question, setup); });
}

Result<BatchAnswer> answer(const BatchQuestion& question, const StepSetup& setup) {
  const StepDocument& document = setup.step.document;
  if (document.fixed_batch) {
    return failure(
        question_error(fmt::format("the step was recorded at batch {} and has no sizes at another",
                                   grouped_digits(*document.batch))));
  }
  const CheckSettings& settings = setup.step.settings;
  BatchSettings search{
      .check = settings, .margin = question.margin, .global_batch = question.global_batch};
  if (search.global_batch) {
    auto accumulating = accumulating_step(document);
    if (!accumulating) return tl::unexpected(std::move(accumulating.error()));
    search.accumulating = *std::move(accumulating);
  }
  auto report = find_batch(setup.graph, setup.card.card, search, setup.workspaces.source());
  if (!report) return tl::unexpected(std::move(report.error()));
  return BatchAnswer{.step = summarise_step(document),
                     .card = setup.card.card,
                     .settings = settings,
                     .report = of_all_replicas(*std::move(report), replica_count(settings)),
                     .notes = setup.notes()};
}

}  // namespace stowage
