#include <algorithm>
#include <stowage/facts.hpp>

#include "answers/library/messages.hpp"
#include "answers/library/questions.hpp"
#include "answers/question/question_error.hpp"
#include "answers/question/version.hpp"
#include "answers/sizing/summary.hpp"
#include "estimator/card/card.hpp"
#include "estimator/model/load_model.hpp"

namespace stowage {

namespace {

ModelFacts facts_of(const ModelSummary& summary) {
  ModelFacts facts{.name = summary.name,
                   .parameters = summary.parameters,
                   .trainable_parameters = summary.trainable_parameters,
                   .parameter_bytes = summary.parameter_bytes.count(),
                   .buffer_bytes = summary.buffer_bytes.count(),
                   .peak_tensor_bytes = summary.memory ? summary.memory->total.count() : 0,
                   .notes = messages_of(summary.notes)};
  for (const SummaryLayer& layer : summary.layers) {
    facts.layers.push_back({layer.name, layer.op, layer.output_at_batch, layer.parameters});
  }
  return facts;
}

}  // namespace

std::string library_version() { return std::string(program_version); }

Answered<ModelFacts> describe(const ModelSpec& model, std::optional<std::int64_t> batch) {
  if (const auto mistake = out_of_range("batch", batch)) return refused({*mistake});
  const auto question = model_question(model);
  if (!question) return refused(question.error());
  const auto found = answer(SummaryQuestion{.model = *question, .batch = batch});
  if (!found) return refused(found.error());
  if (const auto* summary = std::get_if<ModelSummary>(&*found)) return facts_of(*summary);
  return refused({question_error("these are weights, which say no network",
                                 "the config.json beside them describes it")});
}

Answered<std::vector<std::string>> model_names() {
  const auto configs = find_configs({});
  if (!configs) return refused(configs.error());
  std::vector<std::string> names = model_names(configs->models());
  std::ranges::sort(names);
  return names;
}

Answered<std::vector<std::string>> gpu_names() {
  const auto configs = find_configs({});
  if (!configs) return refused(configs.error());
  const auto cards = all_cards(configs->gpus());
  if (!cards) return refused(cards.error());
  std::vector<std::string> names;
  for (const Card& card : *cards) names.push_back(card.name);
  std::ranges::sort(names);
  return names;
}

}  // namespace stowage
