// Does a step fit a card? One model, one batch, one card.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "answers/question/card_question.hpp"
#include "answers/question/step_question.hpp"
#include "answers/sizing/kernel_workspaces.hpp"
#include "answers/sizing/plan_advice.hpp"
#include "answers/sizing/step_summary.hpp"
#include "answers/sizing/tried_changes.hpp"
#include "answers/sizing/verdict.hpp"
#include "answers/subject/step_setup.hpp"
#include "estimator/check/evaluation.hpp"
#include "estimator/check/rule_of_thumb.hpp"

namespace stowage {

struct CheckQuestion {
  StepQuestion step;
  CardQuestion card;
  std::optional<std::int64_t> batch;       ///< absent: a step file's own, or 1
  std::optional<std::int64_t> eval_batch;  ///< of an evaluation beside training
  bool rule_of_thumb = false;              ///< what is usually worked out by hand, beside it
};

/// What would do where the step does not fit.
struct CheckCures {
  LargestBatch largest;            ///< of all replicas
  std::optional<PlanAdvice> plan;  ///< with part of it on the host
  TriedChanges changes;            ///< where not even the smallest batch fits
};

struct CheckAnswer {
  StepSummary step;
  std::int64_t batch = 1;  ///< of all replicas
  Card card;
  CheckSettings settings;
  CheckReport training;  ///< of the step alone
  std::optional<EvaluationReport> evaluation;
  CheckReport report;  ///< with the evaluation, where there is one
  std::vector<KernelWorkspace> workspaces;
  std::optional<RuleOfThumb> rule_of_thumb;
  bool counts_steps_on_host = false;  ///< the optimizer keeps its step counters there
  bool offloads_activations = false;  ///< to pinned memory of the host
  std::optional<CheckCures> cures;    ///< where another batch or a plan may do
  Diagnostics notes;

  [[nodiscard]] Verdict verdict() const { return verdict_of(report); }
};

/// What the question is answered with. `costs`: of the layers, which the answer itself does not
/// need. Errors: what it names cannot be found or read, or does not go together.
[[nodiscard]] Result<StepSetup> set_up_check(const CheckQuestion& question, bool costs = false);
/// `setup`: set_up_check's of the same question. Errors: the step cannot be sized at the batch.
/// Asks cuDNN about each distinct kernel once.
[[nodiscard]] Result<CheckAnswer> answer(const CheckQuestion& question, const StepSetup& setup);
/// Both.
[[nodiscard]] Result<CheckAnswer> answer(const CheckQuestion& question);

}  // namespace stowage
