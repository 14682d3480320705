// check and batch of a model that serves: prefill and decode with a cache of keys and values.
#pragma once

#include <memory>
#include <optional>

#include "cli/options/command.hpp"
#include "cli/requested/requested_step.hpp"
#include "estimator/check/check.hpp"
#include "estimator/serving/serving_passes.hpp"
#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

/// A pass on any card that its kernels were chosen for.
struct SizedPass {
  std::int64_t batch = 1, tokens = 1, past = 0, encoded = 0;  ///< as ServingPass
  SizedStep step;
};

struct SizedServing {
  SizedPass prefill, decode;
  Precision precision = Precision::fp32;
  std::string model;
};

/// A pass on a card.
struct CheckedPass {
  std::int64_t batch = 1, tokens = 1, past = 0, encoded = 0;  ///< as ServingPass
  CheckReport report;
};

struct ServingReport {
  ServingSettings settings;
  CheckedPass prefill, decode;
  LoweringSettings lowering;
  Precision precision = Precision::fp32;
  std::string model;

  [[nodiscard]] bool fits() const { return prefill.report.fits && decode.report.fits; }
  /// The pass that takes more.
  [[nodiscard]] const CheckedPass& larger() const;
};

/// What of a serving request stays the same, whatever its settings: the model's text and the card.
struct ServedModel {
  FoundModel found;
  StepRequest request;
  RequestedCard card;
  CheckSettings settings;
};
/// Errors: a step file, a runtime whose kernels serve no cache, a length of the sequence for a
/// model without an encoder, and requested_settings's.
[[nodiscard]] Result<ServedModel> served_model(const StepRequest& request, CacheKind cache,
                                               const RequestedCard& card);

/// The settings, whose kind of cache suits the model where none is asked for: an encoder-decoder
/// has transformers' dynamic one, any other a paged one. Errors: the model's.
[[nodiscard]] Result<ServingSettings> with_usual_cache(const ServingSettings& settings,
                                                       const StepRequest& request);

/// The served model with so many positions, read anew each time.
[[nodiscard]] ModelAtLength model_at_length(const ServedModel& served);

/// `read`: model_at_length's answers. Depends on the card by its compute capability alone, where
/// `workspaces` does. Errors: the model's, serving_passes's and size_step's.
[[nodiscard]] Result<SizedServing> size_serving(const ServedModel& served,
                                                const ModelAtLength& read,
                                                const ServingSettings& settings,
                                                WorkspaceSource& workspaces);

/// size_serving on the model's card; its errors.
[[nodiscard]] Result<ServingReport> check_serving(const ServedModel& served,
                                                  const ServingSettings& settings,
                                                  WorkspaceSource& workspaces);

/// check with --context-length.
[[nodiscard]] Result<Answer> run_serving(const CheckRequest& request);

}  // namespace stowage
