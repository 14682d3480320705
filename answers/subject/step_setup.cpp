#include "answers/subject/step_setup.hpp"

#include <utility>

#include "answers/subject/notes.hpp"
#include "answers/subject/replicas.hpp"

namespace stowage {

Result<SizedStep> StepSetup::at_batch(std::int64_t batch) const {
  return size_step(graph, replica_batch(batch, step.settings), workspaces.source());
}

Diagnostics StepSetup::notes() const {
  return gathered_notes(notes_on_step(step.document), card, workspaces);
}

Result<StepSetup> set_up_step(const StepSource& source, const StepQuestion& question,
                              AskedCard card, const DocumentParts& parts) {
  auto step = make_asked_step(source, question, card, parts);
  if (!step) return tl::unexpected(std::move(step.error()));
  auto graph = sizing_step(step->document);
  if (!graph) return tl::unexpected(std::move(graph.error()));
  Workspaces workspaces =
      Workspaces::of_cudnn(card.card, step->settings.runtime, question.keep_answers);
  return StepSetup{std::move(card), *std::move(step), *std::move(graph), std::move(workspaces)};
}

Result<StepSetup> set_up_step(const StepQuestion& step, const CardQuestion& card,
                              const DocumentParts& parts) {
  auto found = find_asked_card(card);
  if (!found) return tl::unexpected(std::move(found.error()));
  return read_step_source(step).and_then([&](const StepSource& source) {
    return set_up_step(source, step, *std::move(found), parts);
  });
}

}  // namespace stowage
