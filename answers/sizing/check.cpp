#include "answers/sizing/check.hpp"

#include <utility>

#include "answers/question/question_error.hpp"
#include "answers/subject/contradictions.hpp"
#include "answers/subject/replicas.hpp"
#include "answers/subject/step_setup.hpp"
#include "estimator/check/batch_search.hpp"
#include "estimator/step/offloaded_bytes.hpp"

namespace stowage {

namespace {

// No batch is small enough where a library finds no room beside pools that are taken whole.
bool depends_on_batch(const CheckReport& report) {
  return !report.run.failure || !report.run.failure->at.library;
}

/// Whether the step has an evaluation of `batch` beside it.
Result<void> check_evaluable(const StepDocument& document, std::int64_t batch) {
  const LoweringSettings& settings = document.graph->settings;
  if (settings.mode != Mode::train) {
    return failure(question_error("`eval_batch` is an evaluation beside training",
                                  "without training, give its size as `batch`"));
  }
  if (settings.parallel.fsdp.on || settings.parallel.zero > 0) {
    return failure(question_error("`eval_batch` is not sized beside a sharded model",
                                  "without `fsdp` and `zero` it is"));
  }
  if (document.evaluation == nullptr) {
    return failure(question_error("`eval_batch`: there is no evaluation beside this step"));
  }
  return check_batch(document, batch, "eval_batch");
}

/// The same model, evaluated in the process that trains; none where none is asked for.
Result<std::optional<EvaluationReport>> evaluate(const CheckQuestion& question,
                                                 const StepSetup& setup,
                                                 const SizedStep& training) {
  if (!question.eval_batch) return std::optional<EvaluationReport>();
  const std::int64_t batch = *question.eval_batch;
  if (auto served = check_evaluable(setup.step.document, batch); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  auto report = check_evaluation(training, setup.step.document.evaluation, batch, setup.card.card,
                                 setup.step.settings, setup.workspaces.source());
  if (!report) return tl::unexpected(std::move(report.error()));
  return std::optional(*std::move(report));
}

Result<std::optional<RuleOfThumb>> by_hand(const CheckQuestion& question,
                                           const StepDocument& document, std::int64_t batch) {
  if (!question.rule_of_thumb) return std::optional<RuleOfThumb>();
  return rule_of_thumb(document, batch).map([](const RuleOfThumb& rule) {
    return std::optional(rule);
  });
}

/// None where the step fits, or where nothing that is known would do.
Result<std::optional<CheckCures>> find_cures(const CheckQuestion& question, const StepSetup& setup,
                                             const CheckReport& training) {
  if (training.fits || !depends_on_batch(training) || setup.step.document.fixed_batch) {
    return std::optional<CheckCures>();
  }
  const CheckSettings& settings = setup.step.settings;
  auto largest =
      look_for_largest(setup.graph, setup.card.card, settings, setup.workspaces.source());
  if (!largest) return tl::unexpected(std::move(largest.error()));
  largest->batch *= replica_count(settings);
  CheckCures cures{.largest = *largest, .plan = plan_advice(question.step, setup)};
  if (largest->batch == 0 && largest->is_proven) cures.changes = try_changes(question.step, setup);
  return std::optional(std::move(cures));
}

}  // namespace

Result<StepSetup> set_up_check(const CheckQuestion& question, bool costs) {
  return set_up_step(question.step, question.card,
                     {.costs = costs,
                      .result_bytes = question.rule_of_thumb,
                      .evaluation = question.eval_batch.has_value()});
}

Result<CheckAnswer> answer(const CheckQuestion& question) {
  return set_up_check(question).and_then(
      [&](const StepSetup& setup) { return answer(question, setup); });
}

Result<CheckAnswer> answer(const CheckQuestion& question, const StepSetup& setup) {
  const StepDocument& document = setup.step.document;
  const std::int64_t batch = question.batch.value_or(document.batch.value_or(1));
  if (auto served = check_batch(document, batch, "batch"); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  const auto step = setup.at_batch(batch);
  if (!step) return tl::unexpected(step.error());
  auto evaluation = evaluate(question, setup, *step);
  if (!evaluation) return tl::unexpected(std::move(evaluation.error()));
  const auto rule = by_hand(question, document, batch);
  if (!rule) return tl::unexpected(rule.error());
  CheckAnswer found{.step = summarise_step(document),
                    .batch = batch,
                    .card = setup.card.card,
                    .settings = setup.step.settings,
                    .training = check(*step, setup.card.card, setup.step.settings),
                    .evaluation = *std::move(evaluation),
                    .rule_of_thumb = *rule,
                    .counts_steps_on_host = document.graph->host_state_bytes > 0,
                    .offloads_activations = offloaded_bytes(*document.graph) != Affine(0)};
  found.report =
      found.evaluation ? with_evaluation(found.training, *found.evaluation) : found.training;
  found.workspaces = kernel_workspaces(*step, found.report);
  found.notes = setup.notes();
  auto cures = find_cures(question, setup, found.training);
  if (!cures) return tl::unexpected(std::move(cures.error()));
  found.cures = *std::move(cures);
  return found;
}

}  // namespace stowage
