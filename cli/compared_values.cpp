#include "cli/compared_values.hpp"

#include <map>
#include <numeric>

#include "cli/arguments.hpp"
#include "cli/compared_cards.hpp"
#include "cli/compared_models.hpp"
#include "cli/comparison.hpp"
#include "cli/comparison_report.hpp"
#include "cli/progress.hpp"
#include "cli/value_runs.hpp"

namespace stowage {

namespace {

struct ValueComparison {
  const StepRequest& step;
  const CardRequest& card;
  ValueQuestion question;  ///< but for the model
  std::optional<Bytes> margin = {};
};

CardAnswer card_answer(const ValueRun& run, std::int64_t value) {
  return {.fits = run.fits,
          .needed = run.device_bytes,
          .needed_at = value,
          .available = run.available,
          .headroom = run.headroom};
}

CardAnswer card_answer(const FoundValue& found) {
  CardAnswer answer;
  if (found.at_one) answer = card_answer(*found.at_one, 1);
  if (found.at_largest) answer = card_answer(*found.at_largest, found.largest.value);
  if (found.at_recommended) answer = card_answer(*found.at_recommended, found.recommended.value);
  answer.fits = found.largest.value > 0;
  answer.largest = found.largest.value;
  answer.recommended = found.recommended.value;
  answer.unlimited = found.largest.reached_most;
  return answer;
}

std::vector<Result<CardAnswer>> answers_as_asked(ValueRuns& runs, std::size_t cards) {
  std::vector<std::size_t> all(cards);
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<Result<CardAnswer>> answers;
  for (const Result<ValueRun>& run : runs.at(0, all)) {
    answers.push_back(run.map([](const ValueRun& one) { return card_answer(one, 0); }));
  }
  return answers;
}

/// A card's search as far as the runs that are known lead it.
class ValueSearch {
 public:
  explicit ValueSearch(std::optional<Bytes> margin) : margin_(margin) {}

  void learn(std::int64_t value, Result<ValueRun> run) { known_.emplace(value, std::move(run)); }

  /// The value that must be known before it goes on; none: it is at its end.
  std::optional<std::int64_t> advance() {
    std::optional<std::int64_t> missing;
    ValueTrials trials(
        [&](std::int64_t value) -> Result<ValueRun> {
          const auto found = known_.find(value);
          if (found != known_.end()) return found->second;
          if (!missing) missing = value;
          return failure("not known yet");
        },
        margin_);
    auto found = search_largest(trials);
    if (!missing) answer_ = found.map([](const FoundValue& one) { return card_answer(one); });
    return missing;
  }

  [[nodiscard]] const Result<CardAnswer>& answer() const { return answer_; }

 private:
  std::optional<Bytes> margin_;
  std::map<std::int64_t, Result<ValueRun>> known_;
  Result<CardAnswer> answer_;
};

std::vector<Result<CardAnswer>> answers_of_searches(ValueRuns& runs, std::size_t cards,
                                                    std::optional<Bytes> margin) {
  std::vector<ValueSearch> searches(cards, ValueSearch(margin));
  std::vector<std::size_t> going(cards);
  std::iota(going.begin(), going.end(), std::size_t{0});
  while (!going.empty()) {
    std::map<std::int64_t, std::vector<std::size_t>> asked;
    for (const std::size_t card : going) {
      if (const auto value = searches[card].advance()) asked[*value].push_back(card);
    }
    going.clear();
    for (const auto& [value, of_value] : asked) {
      std::vector<Result<ValueRun>> found = runs.at(value, of_value);
      for (const std::size_t card : of_value) searches[card].learn(value, std::move(found[card]));
      going.insert(going.end(), of_value.begin(), of_value.end());
    }
  }
  std::vector<Result<CardAnswer>> answers;
  for (const ValueSearch& search : searches) answers.push_back(search.answer());
  return answers;
}

void add_rows_of_model(const ValueComparison& of, const std::string& model,
                       const std::vector<RequestedCard>& cards, Comparison& comparison) {
  ValueQuestion question = of.question;
  question.step.model.source = model;
  auto runs = ValueRuns::of(question, cards);
  if (!runs) {
    comparison.rows.push_back({.model = model, .mistakes = std::move(runs.error())});
    return;
  }
  const std::vector<Result<CardAnswer>> answers =
      question.of ? answers_of_searches(*runs, cards.size(), of.margin)
                  : answers_as_asked(*runs, cards.size());
  for (std::size_t i = 0; i < cards.size(); ++i) {
    ComparedRow row{.model = model, .card = cards[i].card};
    if (answers[i]) {
      row.answer = *answers[i];
    } else {
      row.mistakes = answers[i].error();
    }
    comparison.rows.push_back(std::move(row));
  }
  if (!runs->heading().empty()) comparison.steps.push_back({model, runs->heading()});
}

Result<Answer> compared_values(ValueComparison of) {
  const Progress progress("comparing");
  const auto cards = compared_cards(of.card);
  if (!cards) return tl::unexpected(cards.error());
  const auto models = models_named(of.step.typed.positionals, of.step.model.configs.models());
  if (!models) return tl::unexpected(models.error());
  of.question.asks_cudnn = models->size() * cards->size() <= most_pairs_asking_cudnn;
  Comparison comparison{.serves = !of.question.of,
                        .of = of.question.of,
                        .models = models->size(),
                        .cards = cards->size()};
  for (const std::string& model : *models) add_rows_of_model(of, model, *cards, comparison);
  for (const RequestedCard& card : *cards) {
    comparison.notes.insert(comparison.notes.end(), card.notes.begin(), card.notes.end());
  }
  comparison.runtime = of.step.process.runtime.value_or(of.step.process.usual_runtime);
  return comparison_answer(comparison);
}

}  // namespace

Result<Answer> compare_serving(const CheckRequest& request) {
  return compared_values(
      {.step = request.step,
       .card = request.card,
       .question = {.step = request.step, .of = {}, .serving = request.serving}});
}

Result<Answer> compare_largest(const BatchRequest& request) {
  return compared_values({.step = request.step,
                          .card = request.card,
                          .question = {.step = request.step,
                                       .of = request.of,
                                       .serving = request.serving,
                                       .batch = request.batch.value_or(1)},
                          .margin = request.margin});
}

}  // namespace stowage
