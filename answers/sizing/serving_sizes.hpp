// The steps of a model that serves, sized: prefill and decode with a cache of keys and values.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "answers/subject/asked_step.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/serving/serving_passes.hpp"
#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

/// A pass on any card that its kernels were chosen for.
struct SizedPass {
  std::int64_t batch = 1, tokens = 1, past = 0, encoded = 0;  ///< as ServingPass
  SizedStep step;
  Diagnostics warnings = {};  ///< of settings that mean nothing in it
};

struct SizedServing {
  SizedPass prefill, decode;
  Precision precision = Precision::fp32;
  std::string model;
};

/// What of a question about serving stays the same, whatever its settings: the model's text and the
/// card.
struct ServedModel {
  FoundModel found;
  StepQuestion question;
  AskedCard card;
  CheckSettings settings;
  Diagnostics warnings;  ///< of the model's description, and of the reader of its file
};
/// Errors: a step file, a runtime whose kernels serve no cache, a length of the sequence for a
/// model without an encoder, and process_settings's.
[[nodiscard]] Result<ServedModel> served_model(const StepQuestion& question, CacheKind cache,
                                               const AskedCard& card);

/// The settings, whose kind of cache suits the model where none is asked for: an encoder-decoder
/// has transformers' dynamic one, any other a paged one. Errors: the model's.
[[nodiscard]] Result<ServingSettings> with_usual_cache(const ServingSettings& settings,
                                                       const StepQuestion& question);

/// The settings with the prefill chunk that a server takes where none is said: vLLM's OpenAI server
/// takes 8192 tokens on cards of at least 70 GiB that are no A100, else 2048
/// (vllm/engine/arg_utils.py, get_batch_defaults). transformers takes prompts at once.
[[nodiscard]] ServingSettings with_usual_chunk(ServingSettings settings, const Card& card);

/// A pass as a step, for any batch of sequences.
struct PassStep {
  std::shared_ptr<const StepGraph> graph;
  Diagnostics warnings;  ///< of settings that mean nothing in it
};
/// The kernels that the served model's card and release of PyTorch run. Errors: choose_step's and
/// lower()'s; a release that cannot run the model.
[[nodiscard]] Result<PassStep> step_of_pass(const ServingPass& pass, const ServedModel& served);

/// The served model with so many positions, read anew each time.
[[nodiscard]] ModelAtLength model_at_length(const ServedModel& served);

/// The models of both passes. `read`: model_at_length's answers. Errors: the model's and
/// serving_passes's.
[[nodiscard]] Result<ServingPasses> passes_of(const ServedModel& served, const ModelAtLength& read,
                                              const ServingSettings& settings);

/// `read`: model_at_length's answers. Depends on the card by its compute capability alone, where
/// `workspaces` does. Errors: the model's, serving_passes's and size_step's.
[[nodiscard]] Result<SizedServing> size_serving(const ServedModel& served,
                                                const ModelAtLength& read,
                                                const ServingSettings& settings,
                                                WorkspaceSource& workspaces);

}  // namespace stowage
