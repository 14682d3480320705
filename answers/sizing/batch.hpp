// The largest batch of a step that fits a card, and the one to use.
#pragma once

#include <optional>

#include "answers/question/card_question.hpp"
#include "answers/question/step_question.hpp"
#include "answers/sizing/step_summary.hpp"
#include "answers/sizing/verdict.hpp"
#include "answers/subject/step_setup.hpp"
#include "estimator/base/batch.hpp"
#include "estimator/check/batch_search.hpp"

namespace stowage {

struct BatchQuestion {
  StepQuestion step;
  CardQuestion card;
  std::optional<Bytes> margin;  ///< that the recommended batch leaves; absent: the usual one
  std::optional<WholeBatch> global_batch;  ///< to be reached by accumulation over the GPUs
};

struct BatchAnswer {
  StepSummary step;
  Card card;
  CheckSettings settings;
  BatchReport report;  ///< batches of all replicas
  Diagnostics notes;

  /// At the recommended batch, else at the largest, else at 1.
  [[nodiscard]] Verdict verdict() const;
};

/// What the question is answered with. `costs`: of the layers, which the answer itself does not
/// need. Errors: as set_up_check's.
[[nodiscard]] Result<StepSetup> set_up_batch(const BatchQuestion& question, bool costs = false);
/// `setup`: set_up_batch's of the same question. Errors: a step that was recorded at one batch
/// only; a global batch that micro-batches cannot share; the step cannot be sized.
[[nodiscard]] Result<BatchAnswer> answer(const BatchQuestion& question, const StepSetup& setup);
/// Both.
[[nodiscard]] Result<BatchAnswer> answer(const BatchQuestion& question);

}  // namespace stowage
