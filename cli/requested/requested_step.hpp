// From requests to what they mean: the model, the card, the settings, the step.
//
//   ModelRequest -> RequestedModel    CardRequest -> RequestedCard
//   StepRequest, Card -> RequestedStep, which is the document of a step
#pragma once

#include <memory>
#include <string>

#include "cli/options/request.hpp"
#include "estimator/card/card.hpp"
#include "estimator/document/make_document.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/runtime/check_settings.hpp"

namespace stowage {

struct RequestedModel {
  SourceTextPtr source;
  ModelOptions options;
  ModelGraph graph;
};
/// What MODEL names: a description, a name of the catalogue, or a file of another format as the
/// description that its reader makes of it. Errors: also those of that reader.
[[nodiscard]] Result<FoundModel> found_model(const ModelRequest& request);
/// Errors: also a step file, which only some commands take.
[[nodiscard]] Result<RequestedModel> requested_model(const ModelRequest& request);
[[nodiscard]] Result<RequestedModel> loaded_model(FoundModel found, const ModelRequest& request);

struct RequestedCard {
  Card card;
  bool is_assumed = false;  ///< nobody named one: a step's file says its compute capability
  Bytes in_use;             ///< by others, where it is the card of this machine
  Diagnostics notes;        ///< what was assumed
};
/// A catalogue's card, this machine's, or a generic one, as its calibration has it.
[[nodiscard]] Result<RequestedCard> requested_card(const CardRequest& request);

/// What of attention depends on PyTorch's release (LoweringSettings::efficient_takes_groups).
void attend_as_released(StepWishes& wishes, const ReleaseVersion& pytorch);

/// Mistakes that come from the wishes are told as mistakes of the command line.
[[nodiscard]] Result<ChosenStep> requested_choice(StepWishes wishes, const ModelGraph& model,
                                                  Runtime runtime, const Card& card);

/// The document of a step: of its file, or made of a model.
struct RequestedStep {
  StepDocument document;
  CheckSettings settings;
  /// What the document was made of; null: it is a step file's.
  std::shared_ptr<const RequestedModel> model;
};
/// `parts`: what will be asked for. Errors: of a step file, also what was said
/// against what the step was made for (step_file.hpp).
[[nodiscard]] Result<RequestedStep> requested_step(const StepRequest& request,
                                                   const RequestedCard& card,
                                                   const DocumentParts& parts);
/// MODEL of a request, read once for several cards: a description's model, or a step file's step.
struct StepSource {
  std::shared_ptr<const RequestedModel> model;   ///< null: a step file
  std::shared_ptr<const StepDocument> document;  ///< null: a description
};
[[nodiscard]] Result<StepSource> step_source(const StepRequest& request);
/// As requested_step above, of a source that was read for the same request.
[[nodiscard]] Result<RequestedStep> requested_step(const StepSource& source,
                                                   const StepRequest& request,
                                                   const RequestedCard& card,
                                                   const DocumentParts& parts);

/// What its user should know: warnings of the description and of idle wishes, misspelt kernels of
/// a step file, assumptions.
[[nodiscard]] Diagnostics notes_of(const RequestedStep& step, const RequestedCard& card);

using SharedGraph = std::shared_ptr<const StepGraph>;
/// The step by which an accumulation of gradients is sized: that of two micro-batches, from which
/// on all are alike. The document's own where that has several. Errors: it cannot be repeated.
[[nodiscard]] Result<SharedGraph> accumulating_step(const StepDocument& document);
/// The step by which the document is sized: accumulating_step where it accumulates, else its own.
[[nodiscard]] Result<SharedGraph> sizing_step(const StepDocument& document);

/// Where cuDNN's answers are kept; "" where they are not to be, or with STOWAGE_NO_CACHE.
[[nodiscard]] std::string answer_folder(bool keep_answers);

}  // namespace stowage
