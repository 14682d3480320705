// The largest number of users, context length or sequence length that fits a card.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "answers/question/card_question.hpp"
#include "answers/question/step_question.hpp"
#include "answers/sizing/step_summary.hpp"
#include "answers/sizing/value_search.hpp"
#include "answers/sizing/verdict.hpp"
#include "estimator/serving/serving_settings.hpp"

namespace stowage {

enum class LargestOf { users, context_length, seq };

/// What is looked for.
struct SearchedQuantity {
  std::string_view setting;  ///< that a check takes it as: "context_length"
  std::string_view noun;     ///< "context length"
};
[[nodiscard]] SearchedQuantity searched_quantity(LargestOf of);

struct LargestValueQuestion {
  StepQuestion step;
  CardQuestion card;
  LargestOf of = LargestOf::users;
  std::optional<ServingSettings> serving;  ///< with users and context_length
  std::optional<std::int64_t> batch;       ///< with seq; absent: 1
  std::optional<Bytes> margin;             ///< that the recommended value leaves
};

struct LargestValueAnswer {
  LargestOf of = LargestOf::users;
  StepSummary step;        ///< at some value: its `seq` means nothing where that is looked for
  std::int64_t batch = 1;  ///< of the sequences; the users, or the recommended number of them
  Card card;
  CheckSettings settings;
  FoundValues found;
  Diagnostics notes;

  /// At the recommended value, else at the largest, else at 1.
  [[nodiscard]] Verdict verdict() const;
};

/// Errors: as a check's of the model at 1.
[[nodiscard]] Result<LargestValueAnswer> answer(const LargestValueQuestion& question);

}  // namespace stowage
