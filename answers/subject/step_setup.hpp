// StepSetup: what a question about one step on one card is answered with.
//
// A card, a step, the graph by which it is sized and a source of workspaces are put together here
// and nowhere else:
//
//   CardQuestion -> AskedCard --+
//   StepQuestion -> StepSource -+-> AskedStep -> sizing graph -> Workspaces
#pragma once

#include <cstdint>

#include "answers/question/card_question.hpp"
#include "answers/question/step_question.hpp"
#include "answers/subject/asked_step.hpp"
#include "answers/subject/workspaces.hpp"
#include "estimator/memory/sized_step.hpp"

namespace stowage {

struct StepSetup {
  AskedCard card;
  AskedStep step;
  SharedGraph graph;  ///< by which the step is sized (sizing_step)
  Workspaces workspaces;

  /// The step at a batch of all replicas. Errors: as size_step's.
  [[nodiscard]] Result<SizedStep> at_batch(std::int64_t batch) const;
  /// All that is to be known beside the answer: call it when the workspaces have been asked for.
  [[nodiscard]] Diagnostics notes() const;
};

/// Errors: what the question names cannot be found or read, or does not go together.
[[nodiscard]] Result<StepSetup> set_up_step(const StepQuestion& step, const CardQuestion& card,
                                            const DocumentParts& parts);
/// As above, of a source and a card that are there.
[[nodiscard]] Result<StepSetup> set_up_step(const StepSource& source, const StepQuestion& step,
                                            AskedCard card, const DocumentParts& parts);

}  // namespace stowage
