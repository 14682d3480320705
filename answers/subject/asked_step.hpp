// The step that a question names: read from its file, or made of a model for a runtime and a card.
//
//   StepQuestion, AskedCard -> AskedStep: the document of the step, and the settings of its process
#pragma once

#include <memory>

#include "answers/question/step_question.hpp"
#include "answers/subject/asked_card.hpp"
#include "answers/subject/asked_model.hpp"
#include "estimator/document/make_document.hpp"
#include "estimator/runtime/check_settings.hpp"

namespace stowage {

/// The step's settings for the kernels that `runtime` runs on the card. Errors: choose_step's, as
/// mistakes in the question.
[[nodiscard]] Result<ChosenStep> choose_kernels(StepWishes wishes, const ModelGraph& model,
                                                Runtime runtime, const Card& card);

struct AskedStep {
  StepDocument document;
  CheckSettings settings;
  /// What the document was made of; null: it is a step file's.
  std::shared_ptr<const AskedModel> model;
  bool has_other_operators = false;  ///< than the model: PyTorch's release runs others
};

/// The source of a step, read once for several cards: a description's model, or a step's file.
struct StepSource {
  std::shared_ptr<const AskedModel> model;       ///< null: a step file
  std::shared_ptr<const StepDocument> document;  ///< null: a description
};
[[nodiscard]] Result<StepSource> read_step_source(const StepQuestion& question);

/// `source`: as read_step_source read it for the same question. `parts`: what will be asked of the
/// document. To a recorded step that lacks the update of parameters, the optimizer that the
/// question names is added (estimator/recorded/missing_update.hpp), and a note says so. Errors: of
/// a step's file, also what was said against what the step was made for (contradictions.hpp);
/// settings that the runtime does not have (process_settings.hpp).
[[nodiscard]] Result<AskedStep> make_asked_step(const StepSource& source,
                                                const StepQuestion& question, const AskedCard& card,
                                                const DocumentParts& parts);

using SharedGraph = std::shared_ptr<const StepGraph>;
/// The step by which an accumulation of gradients is sized: that of two micro-batches, from which
/// on all are alike. The document's own where that has several. Errors: it cannot be repeated.
[[nodiscard]] Result<SharedGraph> accumulating_step(const StepDocument& document);
/// The step by which the document is sized: accumulating_step where it accumulates, else its own.
[[nodiscard]] Result<SharedGraph> sizing_step(const StepDocument& document);

}  // namespace stowage
