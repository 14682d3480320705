#include "cli/sizing/quantity_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "cli/options/arguments.hpp"
#include "cli/options/serving_request.hpp"
#include "cli/output/progress.hpp"
#include "cli/report/comparison_report.hpp"
#include "cli/requested/requested_settings.hpp"
#include "cli/sizing/affine_sizes.hpp"
#include "cli/sizing/compared_cards.hpp"
#include "cli/sizing/compared_models.hpp"
#include "cli/sizing/serving.hpp"
#include "cli/sizing/shared_runs.hpp"
#include "cli/sizing/sized_values.hpp"
#include "estimator/base/parallel.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "estimator/workspace/runtime_workspace_source.hpp"

namespace stowage {

namespace {

/// What is asked of each card: the largest value, or how one value does.
struct QuantityQuestion {
  BatchRequest request;               ///< with `of`
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
  if (!question.request.serving) return 0;
  return with_usual_chunk(*question.request.serving, card).prefill_chunk.value_or(0);
}

/// The answers of a model on the cards that run the same steps, one after the other.
class AnswersOfSameSteps {
 public:
  AnswersOfSameSteps(const QuantityQuestion& question, const RequestedCard& first)
      : question_(question),
        runtime_(question.request.step.process.runtime.value_or(
            question.request.step.process.usual_runtime)),
        rule_(rule_workspace_source(first.card.compute_capability)),
        workspaces_(*rule_, runtime_) {
    auto sizes = sizes_of_values(question.request, first, workspaces_);
    if (sizes) {
      const std::int64_t block = question.request.serving ? question.request.serving->block : 1;
      // A single token is no sequence, and a chunk may be longer than the context.
      const std::int64_t chunk = chunk_on(question, first.card);
      sizes_ =
          kept_sizes(affine_sizes(*std::move(sizes), block, {2, std::max<std::int64_t>(chunk, 2)}));
    } else {
      mistakes_ = std::move(sizes.error());
    }
  }

  Result<CardAnswer> on(const RequestedCard& card) {
    if (!mistakes_.empty()) return tl::unexpected(mistakes_);
    const auto settings = requested_settings(question_.request.step, runtime_, card);
    if (!settings) return tl::unexpected(settings.error());
    const RunAt run = [&](std::int64_t value) {
      return sizes_(value).map([&](const std::shared_ptr<const SizedSteps>& sized) {
        by_rule_ = by_rule_ || wants_rule(*sized);
        return runs_.of(sized, card.card, *settings);
      });
    };
    Result<CardAnswer> answer =
        question_.value
            ? run(*question_.value).map([&](const ValueRun& one) {
                return answer_of_run(one, *question_.value);
              })
            : search_values(run, question_.request.margin, needs_).map(answer_of_search);
    if (answer) answer->workspaces = by_rule_ ? WorkspaceOrigin::rule : WorkspaceOrigin::none;
    return answer;
  }

 private:
  const QuantityQuestion& question_;
  Runtime runtime_;
  std::unique_ptr<WorkspaceSource> rule_;
  RuntimeWorkspaceSource workspaces_;
  SizedAt sizes_;
  SharedRuns runs_;
  NeedsByValue needs_;
  Diagnostics mistakes_;
  bool by_rule_ = false;
};

/// The rows of a model, a card each.
void answer_model(const QuantityQuestion& question, const std::vector<RequestedCard>& cards,
                  std::vector<ComparedRow>& rows) {
  std::map<std::pair<double, std::int64_t>, std::vector<std::size_t>> by_steps;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const Card& card = cards[i].card;
    by_steps[{card.compute_capability, chunk_on(question, card)}].push_back(i);
  }
  std::vector<const std::vector<std::size_t>*> groups;
  groups.reserve(by_steps.size());
  for (const auto& [key, indices] : by_steps) groups.push_back(&indices);
  const std::size_t first_row = rows.size();
  for (const RequestedCard& card : cards) {
    rows.push_back({.model = question.request.step.model.source, .card = card.card});
  }
  for_each_index(groups.size(), [&](std::size_t group) {
    AnswersOfSameSteps answers(question, cards[groups[group]->front()]);
    for (const std::size_t i : *groups[group]) {
      ComparedRow& row = rows[first_row + i];
      if (auto answer = answers.on(cards[i])) {
        row.answer = *std::move(answer);
      } else {
        row.mistakes = std::move(answer.error());
      }
    }
  });
}

Diagnostics notes_on_rule(const std::vector<ComparedRow>& rows) {
  const bool by_rule = std::ranges::any_of(rows, [](const ComparedRow& row) {
    return row.answer && row.answer->workspaces == WorkspaceOrigin::rule;
  });
  if (!by_rule) return {};
  return {{.severity = Severity::note,
           .message = "workspaces are by the documented rule in a table of this kind",
           .hint = "one model on one card has cuDNN's own answers"}};
}

Result<Answer> compare_quantity(const QuantityQuestion& question, const CardRequest& card_request,
                                Comparison comparison) {
  const Progress progress("comparing");
  const auto cards = compared_cards(card_request);
  if (!cards) return tl::unexpected(cards.error());
  const StepRequest& step = question.request.step;
  const auto models = models_named(step.typed.positionals, step.model.configs.models());
  if (!models) return tl::unexpected(models.error());
  comparison.models = models->size();
  comparison.cards = cards->size();
  for (const std::string& model : *models) {
    QuantityQuestion of_model = question;
    of_model.request.step.model.source = model;
    answer_model(of_model, *cards, comparison.rows);
  }
  for (const RequestedCard& card : *cards) {
    comparison.notes.insert(comparison.notes.end(), card.notes.begin(), card.notes.end());
  }
  const Diagnostics by_rule = notes_on_rule(comparison.rows);
  comparison.notes.insert(comparison.notes.end(), by_rule.begin(), by_rule.end());
  comparison.runtime = step.process.runtime.value_or(step.process.usual_runtime);
  return comparison_answer(comparison);
}

/// "paged cache": where none is asked for, it is the model's usual one.
std::string named_cache(const ServingSettings& settings, const StepRequest& step) {
  ServingSettings named = settings;
  if (settings.cache_is_default) {
    if (step.typed.positionals.size() > 1) return "each model's usual cache";
    const auto usual = with_usual_cache(settings, step);
    if (!usual) return "each model's usual cache";  // a folder
    named = *usual;
  }
  return fmt::format("{} cache", to_string(named.cache));
}

std::string cache_heading(const ServingSettings& settings, const StepRequest& step,
                          std::optional<LargestOf> of) {
  std::string text = "serving";
  if (of != LargestOf::users) text += fmt::format(", users {}", settings.users);
  if (of != LargestOf::context_length) {
    text += fmt::format(", context length {}", settings.context_length);
  }
  text += fmt::format(", {}", named_cache(settings, step));
  if (settings.format != CacheFormat::model) {
    text += fmt::format(", stored as {}", to_string(settings.format));
  }
  return text;
}

}  // namespace

Result<Answer> compare_serving(const CheckRequest& request) {
  QuantityQuestion question{.request = {.step = request.step, .card = request.card},
                            .value = request.serving->users};
  question.request.of = LargestOf::users;
  question.request.serving = request.serving;
  return compare_quantity(question, request.card,
                          {.asks_about_batch = true,
                           .quantity = {.noun = "users", .key = "users", .is_searched = false},
                           .heading = cache_heading(*request.serving, request.step, std::nullopt)});
}

Result<Answer> compare_largest(const BatchRequest& request) {
  const Sought what = sought(*request.of);
  std::string heading = request.serving ? cache_heading(*request.serving, request.step, request.of)
                                        : fmt::format("batch {}", request.batch.value_or(1));
  return compare_quantity(
      {.request = request, .value = std::nullopt}, request.card,
      {.quantity = {.noun = what.option, .key = what.option}, .heading = std::move(heading)});
}

}  // namespace stowage
