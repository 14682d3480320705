#include "answers/sizing/sized_values.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "answers/sizing/serving_sizes.hpp"
#include "answers/subject/notes.hpp"
#include "answers/subject/replicas.hpp"

namespace stowage {

namespace {

using SharedSizes = std::shared_ptr<const SizedSteps>;

SharedSizes shared_sizes(std::vector<SizedStep> steps) {
  return std::make_shared<const SizedSteps>(SizedSteps{std::move(steps)});
}

/// `facts`: is given those of the step.
Result<SharedSizes> sizes_with_seq(const LargestValueQuestion& question, std::int64_t seq,
                                   const AskedCard& card, WorkspaceSource& workspaces,
                                   StepFacts& facts) {
  StepQuestion with_seq = question.step;
  with_seq.model.options.seq = seq;
  const auto source = read_step_source(with_seq);
  if (!source) return tl::unexpected(source.error());
  const auto asked = make_asked_step(*source, with_seq, card, step_alone);
  if (!asked) return tl::unexpected(asked.error());
  if (!asked->model || asked->model->graph.default_seq == 0) {
    return failure(fmt::format("'{}' has no symbol 'seq', so that its sequences have no length",
                               question.step.model.source));
  }
  facts = {summarise_step(asked->document), notes_on_step(asked->document)};
  const auto graph = sizing_step(asked->document);
  if (!graph) return tl::unexpected(graph.error());
  auto step =
      size_step(*graph, replica_batch(question.batch.value_or(1), asked->settings), workspaces);
  if (!step) return tl::unexpected(std::move(step.error()));
  return shared_sizes({*std::move(step)});
}

/// Prefill in chunks and decode have the same lengths whatever the context and the users: what is
/// asked for a second time is kept.
ModelAtLength kept_models(ModelAtLength read) {
  struct Known {
    std::set<std::int64_t> asked;
    std::map<std::int64_t, Result<ModelGraph>> models;
  };
  return [read = std::move(read), known = std::make_shared<Known>()](std::int64_t positions) {
    const auto found = known->models.find(positions);
    if (found != known->models.end()) return found->second;
    Result<ModelGraph> model = read(positions);
    if (!known->asked.insert(positions).second) known->models.emplace(positions, model);
    return model;
  };
}

SizedValues sizes_by_seq(const LargestValueQuestion& question, const AskedCard& card,
                         WorkspaceSource& workspaces) {
  const auto facts = std::make_shared<StepFacts>();
  return {.at =
              [&question, card, &workspaces, facts](std::int64_t seq) {
                return sizes_with_seq(question, seq, card, workspaces, *facts);
              },
          .facts = facts};
}

StepFacts facts_of(const ServedModel& served, const SizedServing& sized) {
  StepFacts facts{{.model = sized.model,
                   .lowering = sized.decode.step.graph->settings,
                   .precision = sized.precision},
                  served.warnings};
  append_notes(facts.warnings, sized.decode.warnings);
  return facts;
}

}  // namespace

Result<SizedValues> sizes_of_values(const LargestValueQuestion& question, const AskedCard& card,
                                    WorkspaceSource& workspaces) {
  if (question.of == LargestOf::seq) return sizes_by_seq(question, card, workspaces);
  const auto usual = with_usual_cache(*question.serving, question.step);
  if (!usual) return tl::unexpected(usual.error());
  auto served = served_model(question.step, usual->cache, card);
  if (!served) return tl::unexpected(std::move(served.error()));
  const ServingSettings settings = with_usual_chunk(*usual, card.card);
  const bool of_users = question.of == LargestOf::users;
  ModelAtLength read = kept_models(model_at_length(*served));
  const auto facts = std::make_shared<StepFacts>();
  SizedValues values{.facts = facts};
  values.at = [served = *std::move(served), read = std::move(read), settings, of_users, &workspaces,
               facts](std::int64_t value) -> Result<SharedSizes> {
    ServingSettings with_value = settings;
    (of_users ? with_value.users : with_value.context_length) = value;
    auto sized = size_serving(served, read, with_value, workspaces);
    if (!sized) return tl::unexpected(std::move(sized.error()));
    *facts = facts_of(served, *sized);
    return shared_sizes({std::move(sized->prefill.step), std::move(sized->decode.step)});
  };
  return values;
}

}  // namespace stowage
