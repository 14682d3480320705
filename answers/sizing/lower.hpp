// A step as a document: a model lowered for a runtime and a card.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "answers/question/card_question.hpp"
#include "answers/question/model_question.hpp"
#include "estimator/base/runtime.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/step/choose_step.hpp"

namespace stowage {

struct LowerQuestion {
  ModelQuestion model;
  std::optional<CardQuestion> card;  ///< absent: the compute capability of a generic one
  StepWishes wishes;                 ///< as StepQuestion's
  Runtime runtime = default_runtime;
  std::optional<std::int64_t> batch;  ///< that the document says; the step is for any
  std::string written_by;             ///< what the document says of its origin
};

struct LowerAnswer {
  StepDocument document;
  Diagnostics notes;
};

/// Errors: the model's, the card's, settings that the step cannot have; a batch at which it cannot
/// be sized.
[[nodiscard]] Result<LowerAnswer> answer(const LowerQuestion& question);

}  // namespace stowage
