#include "answers/table/batch_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "answers/subject/asked_step.hpp"
#include "answers/subject/contradictions.hpp"
#include "answers/subject/notes.hpp"
#include "answers/subject/process_settings.hpp"
#include "answers/subject/replicas.hpp"
#include "answers/subject/workspaces.hpp"
#include "answers/table/table_notes.hpp"

namespace stowage {

namespace {

/// The steps of a model: PyTorch's lowering depends on a card's compute capability, and on no other
/// figure of it.
class StepsOfModel {
 public:
  StepsOfModel(const TableQuestion& question, const std::string& model)
      : cell_(question.cell), step_(question.step) {
    step_.model.source = model;
    auto source = read_step_source(step_);
    if (source) {
      source_ = *std::move(source);
    } else {
      mistakes_ = std::move(source.error());
    }
  }

  [[nodiscard]] const Diagnostics& mistakes() const { return mistakes_; }

  Result<CardCase> on(const AskedCard& card) {
    const Result<AskedStep>& asked = lowered(card);
    if (!asked) return tl::unexpected(asked.error());
    const StepDocument& document = asked->document;
    auto settings = process_settings(step_, asked->settings.runtime, card);
    if (!settings) return tl::unexpected(std::move(settings.error()));
    CardCase one{.graph = graphs_.at(card.card.compute_capability),
                 .card = card.card,
                 .settings = *std::move(settings),
                 .any_batch = !document.fixed_batch};
    const auto* at = std::get_if<TableAtBatch>(&cell_);
    if (const auto* search = std::get_if<TableOfBatches>(&cell_)) one.margin = search->margin;
    if (at != nullptr || document.fixed_batch) {
      const auto asked_batch = at != nullptr ? at->batch : std::nullopt;
      const std::int64_t batch = asked_batch.value_or(document.batch.value_or(1));
      if (auto served = check_batch(document, batch, "batch"); !served) {
        return tl::unexpected(std::move(served.error()));
      }
      one.batch = replica_batch(batch, one.settings);
    }
    return one;
  }

  /// Of the first card that it could be lowered for; null: none.
  [[nodiscard]] const StepDocument* document() const {
    const auto found =
        std::ranges::find_if(lowered_, [](const auto& entry) { return entry.second.has_value(); });
    return found == lowered_.end() ? nullptr : &found->second->document;
  }

 private:
  const Result<AskedStep>& lowered(const AskedCard& card) {
    const double capability = card.card.compute_capability;
    const auto known = lowered_.find(capability);
    if (known != lowered_.end()) return known->second;
    auto step = make_asked_step(source_, step_, card, step_alone);
    if (step) {
      auto graph = sizing_step(step->document);
      if (graph) {
        graphs_[capability] = *std::move(graph);
      } else {
        step = tl::unexpected(std::move(graph.error()));
      }
    }
    return lowered_.emplace(capability, std::move(step)).first->second;
  }

  const TableCell& cell_;
  StepQuestion step_;
  StepSource source_;
  Diagnostics mistakes_;
  std::map<double, Result<AskedStep>> lowered_;  // by compute capability
  std::map<double, SharedGraph> graphs_;
};

bool asks_cudnn(const CardCase& one) {
  return !one.card.cudnn_device_json.empty() &&
         std::ranges::any_of(one.graph->nodes, wants_workspace);
}

/// Rows with their cases; those that have one are answered.
struct Cases {
  std::vector<CardCase> cases;
  std::vector<std::size_t> row;  ///< by case
};

/// The sources of workspaces, one a case.
class SourcesOfCases {
 public:
  SourcesOfCases(std::vector<CardCase>& cases, bool keep_answers) {
    const auto asking = static_cast<std::size_t>(std::ranges::count_if(cases, asks_cudnn));
    const bool by_rule = asking > most_pairs_asking_cudnn;
    for (CardCase& one : cases) {
      one.alone = !by_rule && asks_cudnn(one);
      sources_.push_back(one.alone
                             ? Workspaces::of_cudnn(one.card, one.settings.runtime, keep_answers)
                             : Workspaces::by_rule(one.card, one.settings.runtime));
      pointers_.push_back(&sources_.back().source());
    }
    if (by_rule) pairs_by_rule_ = asking;
  }

  [[nodiscard]] const std::vector<WorkspaceSource*>& pointers() const { return pointers_; }

  [[nodiscard]] Diagnostics notes() const {
    if (pairs_by_rule_ > 0) {
      return {
          {.severity = Severity::note,
           .message = fmt::format(
               "workspaces are by the documented rule: cuDNN is asked about {} pairs of a model "
               "and a card at most, and these are {}",
               most_pairs_asking_cudnn, pairs_by_rule_),
           .hint = "fewer cards, or one, have cuDNN's own answers"}};
    }
    for (const Workspaces& source : sources_) {
      if (Diagnostics notes = source.notes(); !notes.empty()) return notes;
    }
    return {};
  }

 private:
  std::size_t pairs_by_rule_ = 0;
  std::vector<Workspaces> sources_;
  std::vector<WorkspaceSource*> pointers_;
};

CardAnswer of_all_replicas(CardAnswer answer, std::int64_t replicas) {
  for (std::int64_t* batch : {&answer.largest, &answer.recommended, &answer.needed_at}) {
    *batch *= replicas;
  }
  return answer;
}

/// Fills the rows' answers; gives what is to be said of their workspaces.
Diagnostics answer_rows(Cases& cases, bool keep_answers, std::vector<TableRow>& rows) {
  const SourcesOfCases sources(cases.cases, keep_answers);
  const std::vector<Result<CardAnswer>> answers = compare_cards(cases.cases, sources.pointers());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    TableRow& row = rows[cases.row[i]];
    if (answers[i]) {
      row.answer = of_all_replicas(*answers[i], replica_count(cases.cases[i].settings));
    } else {
      row.mistakes = answers[i].error();
    }
  }
  return sources.notes();
}

/// Adds the model's rows, and the cases of those that can be answered.
void add_model(StepsOfModel& steps, const std::string& model, const std::vector<AskedCard>& cards,
               TableAnswer& table, Cases& cases) {
  if (!steps.mistakes().empty()) {
    table.rows.push_back({.model = model, .mistakes = steps.mistakes()});
    return;
  }
  for (const AskedCard& card : cards) {
    TableRow row{.model = model, .card = card.card};
    if (auto one = steps.on(card)) {
      cases.cases.push_back(*std::move(one));
      cases.row.push_back(table.rows.size());
    } else {
      row.mistakes = std::move(one.error());
    }
    table.rows.push_back(std::move(row));
  }
}

}  // namespace

TableAnswer table_of_batches(const TableQuestion& question, const std::vector<std::string>& models,
                             const std::vector<AskedCard>& cards) {
  TableAnswer table{.cell = question.cell, .models = models.size(), .cards = cards.size()};
  Cases cases;
  std::vector<NotesOfModel> warnings;
  for (const std::string& model : models) {
    StepsOfModel steps(question, model);
    add_model(steps, model, cards, table, cases);
    if (const StepDocument* document = steps.document()) {
      table.steps.push_back({model, summarise_step(*document)});
      warnings.push_back({model, notes_on_step(*document)});
    }
  }
  Diagnostics on_workspaces = answer_rows(cases, question.step.keep_answers, table.rows);
  if (!cases.cases.empty()) table.runtime = cases.cases.front().settings.runtime;
  table.notes = table_notes(table, warnings, cards, std::move(on_workspaces));
  return table;
}

}  // namespace stowage
