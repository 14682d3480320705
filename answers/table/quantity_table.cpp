#include "answers/table/quantity_table.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "answers/sizing/serving_sizes.hpp"
#include "answers/sizing/sized_values.hpp"
#include "answers/subject/process_settings.hpp"
#include "answers/subject/workspaces.hpp"
#include "answers/table/affine_sizes.hpp"
#include "answers/table/shared_runs.hpp"
#include "answers/table/table_notes.hpp"
#include "estimator/base/parallel.hpp"

namespace stowage {

namespace {

/// What is asked of each card: the largest value, or how one value does.
struct QuantityQuestion {
  LargestValueQuestion largest;       ///< whose card is not looked at
  std::optional<std::int64_t> value;  ///< none: the largest one
};

/// Each value's steps, once.
SizedAt kept_sizes(SizedAt sizes) {
  using Known = std::map<std::int64_t, Result<std::shared_ptr<const SizedSteps>>>;
  return [sizes = std::move(sizes), known = std::make_shared<Known>()](std::int64_t value) {
    const auto found = known->find(value);
    if (found != known->end()) return found->second;
    return known->emplace(value, sizes(value)).first->second;
  };
}

bool wants_rule(const SizedSteps& sized) {
  return std::ranges::any_of(sized.steps, [](const SizedStep& step) {
    return step.workspace_origin == WorkspaceOrigin::rule;
  });
}

CardAnswer answer_of_run(const ValueRun& run, std::int64_t value) {
  return {.fits = run.fits,
          .needed = run.device_bytes,
          .needed_at = value,
          .available = run.available,
          .headroom = run.headroom};
}

CardAnswer answer_of_search(const FoundValues& found) {
  CardAnswer answer;
  if (found.at_one) answer = answer_of_run(*found.at_one, 1);
  if (found.at_largest) answer = answer_of_run(*found.at_largest, found.largest.value);
  if (found.at_recommended) answer = answer_of_run(*found.at_recommended, found.recommended.value);
  answer.largest = found.largest.value;
  answer.recommended = found.recommended.value;
  answer.keeps_margin = found.recommended.value > 0;
  answer.unlimited = found.largest.reached_most;
  return answer;
}

std::int64_t chunk_on(const QuantityQuestion& question, const Card& card) {
  if (!question.largest.serving) return 0;
  return with_usual_chunk(*question.largest.serving, card).prefill_chunk.value_or(0);
}

/// The answers of a model on the cards that run the same steps, one after the other.
class AnswersOfSameSteps {
 public:
  AnswersOfSameSteps(const QuantityQuestion& question, const AskedCard& first)
      : question_(question),
        runtime_(question.largest.step.process.runtime_or_usual()),
        workspaces_(Workspaces::by_rule(first.card, runtime_)) {
    auto sizes = sizes_of_values(question.largest, first, workspaces_.source());
    if (sizes) {
      const auto& serving = question.largest.serving;
      const std::int64_t block = serving ? serving->block : 1;
      // A single token is no sequence, and a chunk may be longer than the context.
      const std::int64_t chunk = chunk_on(question, first.card);
      sizes_at_ = kept_sizes(
          affine_sizes(std::move(sizes->at), block, {2, std::max<std::int64_t>(chunk, 2)}));
      facts_ = std::move(sizes->facts);
    } else {
      mistakes_ = std::move(sizes.error());
    }
  }

  Result<CardAnswer> on(const AskedCard& card) {
    if (!mistakes_.empty()) return tl::unexpected(mistakes_);
    const auto settings = process_settings(question_.largest.step, runtime_, card);
    if (!settings) return tl::unexpected(settings.error());
    const RunAt run = [&](std::int64_t value) {
      return sizes_at_(value).map([&](const std::shared_ptr<const SizedSteps>& sized) {
        by_rule_ = by_rule_ || wants_rule(*sized);
        return runs_.of(sized, card.card, *settings);
      });
    };
    Result<CardAnswer> answer =
        question_.value
            ? run(*question_.value).map([&](const ValueRun& one) {
                return answer_of_run(one, *question_.value);
              })
            : search_values(run, question_.largest.margin, needs_).map(answer_of_search);
    if (answer) answer->workspaces = by_rule_ ? WorkspaceOrigin::rule : WorkspaceOrigin::none;
    return answer;
  }

  /// Of the model, once a card has been answered.
  [[nodiscard]] Diagnostics warnings() const { return facts_ ? facts_->warnings : Diagnostics{}; }

 private:
  const QuantityQuestion& question_;
  Runtime runtime_;
  Workspaces workspaces_;
  SizedAt sizes_at_;
  std::shared_ptr<const StepFacts> facts_;
  SharedRuns runs_;
  NeedsByValue needs_;
  Diagnostics mistakes_;
  bool by_rule_ = false;
};

/// Cards by index, grouped: those of a group run the same steps.
std::vector<std::vector<std::size_t>> cards_by_steps(const QuantityQuestion& question,
                                                     const std::vector<AskedCard>& cards) {
  std::map<std::pair<double, std::int64_t>, std::vector<std::size_t>> by_steps;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const Card& card = cards[i].card;
    by_steps[{card.compute_capability, chunk_on(question, card)}].push_back(i);
  }
  std::vector<std::vector<std::size_t>> groups;
  groups.reserve(by_steps.size());
  for (auto& [steps, indices] : by_steps) groups.push_back(std::move(indices));
  return groups;
}

/// Adds the rows of a model, a card each; gives its warnings.
Diagnostics answer_model(const QuantityQuestion& question, const std::vector<AskedCard>& cards,
                         std::vector<TableRow>& rows) {
  const std::vector<std::vector<std::size_t>> groups = cards_by_steps(question, cards);
  const std::size_t first_row = rows.size();
  for (const AskedCard& card : cards) {
    rows.push_back({.model = question.largest.step.model.source, .card = card.card});
  }
  std::vector<Diagnostics> warnings(groups.size());
  for_each_index(groups.size(), [&](std::size_t group) {
    AnswersOfSameSteps answers(question, cards[groups[group].front()]);
    for (const std::size_t i : groups[group]) {
      TableRow& row = rows[first_row + i];
      if (auto answer = answers.on(cards[i])) {
        row.answer = *std::move(answer);
      } else {
        row.mistakes = std::move(answer.error());
      }
    }
    warnings[group] = answers.warnings();
  });
  return warnings.empty() ? Diagnostics{} : std::move(warnings.front());
}

Diagnostics notes_on_rule(const std::vector<TableRow>& rows) {
  const bool by_rule = std::ranges::any_of(rows, [](const TableRow& row) {
    return row.answer && row.answer->workspaces == WorkspaceOrigin::rule;
  });
  if (!by_rule) return {};
  return {{.severity = Severity::note,
           .message = "workspaces are by the documented rule in a table of this kind",
           .hint = "one model on one card has cuDNN's own answers"}};
}

QuantityQuestion question_of(const TableQuestion& table) {
  QuantityQuestion question{.largest = {.step = table.step}};
  if (const auto* serving = std::get_if<TableOfServing>(&table.cell)) {
    question.largest.of = LargestOf::users;
    question.largest.serving = serving->settings;
    question.value = serving->settings.users;
  } else if (const auto* values = std::get_if<TableOfValues>(&table.cell)) {
    question.largest.of = values->of;
    question.largest.serving = values->serving;
    question.largest.batch = values->batch;
    question.largest.margin = values->margin;
  }
  return question;
}

/// With the cache that is usual for the model where none is asked for; none: each model has its
/// own, or the only one is a folder.
std::optional<ServingSettings> usual_serving(const QuantityQuestion& question,
                                             const TableQuestion& table) {
  const std::optional<ServingSettings>& serving = question.largest.serving;
  if (!serving || !serving->cache_is_default) return serving;
  if (table.models.size() > 1) return std::nullopt;
  StepQuestion step = table.step;
  step.model.source = table.models.front();
  const auto usual = with_usual_cache(*serving, step);
  return usual ? std::optional(*usual) : std::nullopt;
}

}  // namespace

TableAnswer table_of_quantity(const TableQuestion& question, const std::vector<std::string>& models,
                              const std::vector<AskedCard>& cards) {
  TableAnswer table{.cell = question.cell, .models = models.size(), .cards = cards.size()};
  QuantityQuestion of_model = question_of(question);
  table.serving = usual_serving(of_model, question);
  table.runtime = question.step.process.runtime_or_usual();
  std::vector<NotesOfModel> warnings;
  for (const std::string& model : models) {
    of_model.largest.step.model.source = model;
    warnings.push_back({model, answer_model(of_model, cards, table.rows)});
  }
  table.notes = table_notes(table, warnings, cards, notes_on_rule(table.rows));
  return table;
}

}  // namespace stowage
