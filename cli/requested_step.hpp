// From requests to what they mean: the model, the card, the settings, the step.
//
//   ModelRequest -> RequestedModel    CardRequest -> RequestedCard
//   ProcessRequest, Card -> CheckSettings
//   StepRequest -> RequestedStep, all of the above with the step's graph
#pragma once

#include <memory>
#include <string>

#include "cli/request.hpp"
#include "estimator/card/card.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/runtime/check_settings.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

struct RequestedModel {
  SourceTextPtr source;
  ModelOptions options;
  ModelGraph graph;
};
[[nodiscard]] Result<RequestedModel> requested_model(const ModelRequest& request);

struct RequestedCard {
  Card card;
  Diagnostics notes;  ///< what was assumed
};
/// A catalogue's card, or a generic one, as its calibration has it.
[[nodiscard]] Result<RequestedCard> requested_card(const CardRequest& request);

/// Mistakes that come from the wishes are told as mistakes of the command line.
[[nodiscard]] Result<ChosenStep> requested_choice(StepWishes wishes, const ModelGraph& model,
                                                  KernelSet kernels, const Card& card);

/// Errors: lazy loading before the first CUDA that has it.
[[nodiscard]] Result<CheckSettings> requested_settings(const ProcessRequest& request,
                                                       const Card& card);

struct RequestedStep {
  RequestedModel model;
  RequestedCard card;
  CheckSettings settings;
  ChosenStep chosen;
  std::shared_ptr<const StepGraph> graph;
};
[[nodiscard]] Result<RequestedStep> requested_step(const StepRequest& request);
/// What its user should know: warnings of the description, assumptions, idle wishes.
[[nodiscard]] Diagnostics notes_of(const RequestedStep& step);

/// Where cuDNN's answers are kept; "" where they are not to be, or with STOWAGE_NO_CACHE.
[[nodiscard]] std::string answer_folder(bool keep_answers);

}  // namespace stowage
