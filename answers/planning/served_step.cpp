#include "answers/planning/served_step.hpp"

#include <memory>
#include <utility>

#include "answers/sizing/serving_sizes.hpp"
#include "answers/subject/notes.hpp"
#include "estimator/document/make_document.hpp"
#include "estimator/serving/served_round.hpp"

namespace stowage {

namespace {

PlannedPass planned(const ServingPass& pass) {
  return {.batch = pass.batch, .tokens = pass.tokens, .past = pass.past};
}

/// The document of a step of serving: it has a batch of its own.
StepDocument document_of(const ModelGraph& model, std::shared_ptr<const StepGraph> graph,
                         std::int64_t users) {
  StepDocument document{.source = model.source, .graph = std::move(graph), .batch = users};
  document.runtime = Runtime::pytorch;
  document.precision = model.precision;
  document.fixed_batch = true;
  document.parameters = model.parameters;
  document.layers = layers_of(model);
  return document;
}

}  // namespace

Result<ServedStep> served_step(const StepQuestion& question, const ServingSettings& settings,
                               const AskedCard& card) {
  const auto usual = with_usual_cache(settings, question);
  if (!usual) return tl::unexpected(usual.error());
  const auto served = served_model(question, usual->cache, card);
  if (!served) return tl::unexpected(served.error());
  const ServingSettings with_chunk = with_usual_chunk(*usual, card.card);
  const auto passes = passes_of(*served, model_at_length(*served), with_chunk);
  if (!passes) return tl::unexpected(passes.error());
  const auto prefill = step_of_pass(passes->prefill, *served);
  if (!prefill) return tl::unexpected(prefill.error());
  const auto decode = step_of_pass(passes->decode, *served);
  if (!decode) return tl::unexpected(decode.error());
  auto round = served_round({*prefill->graph, passes->prefill.batch},
                            {*decode->graph, passes->decode.batch});
  if (!round) return tl::unexpected(std::move(round.error()));
  const ModelGraph& model = passes->decode.model;
  ServedStep found{.round = document_of(model, std::make_shared<const StepGraph>(*std::move(round)),
                                        passes->decode.batch),
                   .decode = document_of(model, decode->graph, passes->decode.batch),
                   .serving = with_chunk,
                   .prefill_pass = planned(passes->prefill),
                   .decode_pass = planned(passes->decode),
                   .settings = served->settings,
                   .pins = model.pins};
  found.round.warnings = served->warnings;
  append_notes(found.round.warnings, decode->warnings);
  return found;
}

}  // namespace stowage
