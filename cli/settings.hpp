// What several commands read from the command line in the same way.
#pragma once

#include <memory>
#include <string>

#include "cli/arguments.hpp"
#include "cli/config_directory.hpp"
#include "estimator/card/card.hpp"
#include "estimator/check/check.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/step/choose_step.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

struct RequestedModel {
  SourceTextPtr source;
  ModelOptions options;
  ModelGraph graph;
};

/// The first positional, with --seq and --set.
[[nodiscard]] Result<RequestedModel> requested_model(const Arguments& arguments,
                                                     const ConfigDirectory& configs);

/// --layout; nullopt: not given.
[[nodiscard]] std::optional<TensorLayout> requested_layout(const Arguments& arguments);

/// --precision; nullopt: not given.
[[nodiscard]] std::optional<Precision> requested_precision(const Arguments& arguments);

struct RequestedCard {
  Card card;
  Diagnostics notes;  ///< what was assumed
};

/// --gpu, or a generic card of a bare --gpu-memory (which with --gpu replaces the card's total).
/// Errors: neither; an unknown card; --compute-capability with --gpu.
[[nodiscard]] Result<RequestedCard> requested_card(const Arguments& arguments,
                                                   const ConfigDirectory& configs);

/// The step that --mode, --optimizer, --accumulation and their like ask for.
[[nodiscard]] Result<ChosenStep> requested_choice(const Arguments& arguments,
                                                  const ModelGraph& model, KernelSet kernels,
                                                  const Card& card);

/// --runtime (`fallback` where it is not given), --in-use, --reserve, --context, and the options
/// of one runtime. Errors: the latter's mistakes; with another runtime.
[[nodiscard]] Result<CheckSettings> requested_check(const Arguments& arguments, Runtime fallback,
                                                    const Card& card);

/// Where cuDNN's answers are kept; "" with --no-cache or STOWAGE_NO_CACHE.
[[nodiscard]] std::string answer_folder(const Arguments& arguments);

/// All that check and batch ask of the command line, and the step that follows from it.
struct RequestedStep {
  RequestedModel model;
  RequestedCard card;
  CheckSettings settings;
  ChosenStep chosen;
  std::shared_ptr<const StepGraph> graph;
};
[[nodiscard]] Result<RequestedStep> requested_step(const Arguments& arguments, Runtime fallback);
/// What its user should know: warnings of the description, assumptions, idle options.
[[nodiscard]] Diagnostics notes_of(const RequestedStep& request);

/// "vgg16, batch 64, training with sgd, fp32"
[[nodiscard]] std::string describe_step(const ModelGraph& model, const LoweringSettings& lowering,
                                        std::optional<std::int64_t> batch,
                                        std::optional<std::int64_t> seq);
/// The JSON member `settings` that every command about a step prints.
[[nodiscard]] Json settings_json(const ModelGraph& model, const ChosenStep& chosen,
                                 std::int64_t batch, std::optional<std::int64_t> seq,
                                 std::string_view runtime);

}  // namespace stowage
