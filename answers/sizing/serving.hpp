// Does a model that serves fit a card? Prefill and decode with a cache of keys and values.
#pragma once

#include <cstdint>
#include <string>

#include "answers/question/card_question.hpp"
#include "answers/question/step_question.hpp"
#include "answers/sizing/step_summary.hpp"
#include "answers/sizing/verdict.hpp"
#include "estimator/check/check.hpp"
#include "estimator/serving/serving_settings.hpp"

namespace stowage {

struct ServingQuestion {
  StepQuestion step;
  CardQuestion card;
  ServingSettings settings;
};

/// A pass on a card.
struct CheckedPass {
  std::int64_t batch = 1, tokens = 1, past = 0, encoded = 0;  ///< as ServingPass
  CheckReport report;
};

struct ServingAnswer {
  StepSummary step;  ///< of the decode pass
  Card card;
  ServingSettings serving;  ///< with the model's usual cache and the server's usual chunk
  CheckSettings settings;
  CheckedPass prefill, decode;
  Diagnostics notes;

  [[nodiscard]] bool fits() const { return prefill.report.fits && decode.report.fits; }
  /// The pass that takes more.
  [[nodiscard]] const CheckedPass& larger() const;
  /// The pass that the verdict is about: the first that does not fit, else the larger one.
  [[nodiscard]] const CheckedPass& deciding() const;
  [[nodiscard]] Verdict verdict() const { return verdict_of(deciding().report); }
};

/// Errors: as a check's; a step's file; a model without a context's length; a runtime that serves
/// no cache.
[[nodiscard]] Result<ServingAnswer> answer(const ServingQuestion& question);

}  // namespace stowage
