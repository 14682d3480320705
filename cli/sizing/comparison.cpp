#include "cli/sizing/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>

#include "cli/options/arguments.hpp"
#include "cli/output/progress.hpp"
#include "cli/report/comparison_report.hpp"
#include "cli/report/replicas.hpp"
#include "cli/report/step_file.hpp"
#include "cli/report/workspace_report.hpp"
#include "cli/requested/requested_settings.hpp"
#include "cli/requested/requested_step.hpp"
#include "cli/sizing/compared_cards.hpp"
#include "cli/sizing/compared_models.hpp"
#include "cli/sizing/quantity_comparison.hpp"
#include "estimator/check/compare_cards.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "estimator/workspace/runtime_workspace_source.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"

namespace stowage {

namespace {

/// What check and batch ask alike.
struct ComparisonRequest {
  const StepRequest& step;
  const CardRequest& card;
  std::optional<std::int64_t> batch;
  bool asks_about_batch = false;  ///< check: at `batch`, a step file's own, or 1
  std::optional<Bytes> margin = {};
};

/// The steps of a model: PyTorch's lowering depends on a card's compute capability, and on no other
/// figure of it.
class StepsOfModel {
 public:
  StepsOfModel(const ComparisonRequest& request, const std::string& model)
      : batch_(request.batch),
        asks_about_batch_(request.asks_about_batch),
        margin_(request.margin),
        step_(request.step) {
    step_.model.source = model;
    auto source = step_source(step_);
    if (source) {
      source_ = *std::move(source);
    } else {
      mistakes_ = std::move(source.error());
    }
  }

  [[nodiscard]] const Diagnostics& mistakes() const { return mistakes_; }

  Result<CardCase> on(const RequestedCard& card) {
    const Result<RequestedStep>& requested = lowered(card);
    if (!requested) return tl::unexpected(requested.error());
    const StepDocument& document = requested->document;
    auto settings = requested_settings(step_, requested->settings.runtime, card);
    if (!settings) return tl::unexpected(std::move(settings.error()));
    CardCase one{.graph = graphs_.at(card.card.compute_capability),
                 .card = card.card,
                 .settings = *std::move(settings),
                 .margin = margin_,
                 .any_batch = !document.fixed_batch};
    if (asks_about_batch_ || document.fixed_batch) {
      const std::int64_t batch = batch_.value_or(document.batch.value_or(1));
      if (auto served = check_batch(document, batch, "--batch"); !served) {
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
  const Result<RequestedStep>& lowered(const RequestedCard& card) {
    const double capability = card.card.compute_capability;
    const auto known = lowered_.find(capability);
    if (known != lowered_.end()) return known->second;
    auto step = requested_step(source_, step_, card, step_alone);
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

  std::optional<std::int64_t> batch_;
  bool asks_about_batch_;
  std::optional<Bytes> margin_;
  StepRequest step_;
  StepSource source_;
  Diagnostics mistakes_;
  std::map<double, Result<RequestedStep>> lowered_;  // by compute capability
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
    by_rule_ = asking > most_pairs_asking_cudnn;
    for (CardCase& one : cases) {
      one.alone = !by_rule_ && asks_cudnn(one);
      if (one.alone) {
        auto cudnn = std::make_unique<CudnnWorkspaceSource>(one.card, answer_folder(keep_answers));
        cudnn_.push_back(cudnn.get());
        kernels_.push_back(std::move(cudnn));
      } else {
        kernels_.push_back(rule_workspace_source(one.card.compute_capability));
      }
      runtimes_.push_back(
          std::make_unique<RuntimeWorkspaceSource>(*kernels_.back(), one.settings.runtime));
      pointers_.push_back(runtimes_.back().get());
    }
    if (by_rule_) pairs_ = asking;
  }

  [[nodiscard]] const std::vector<WorkspaceSource*>& pointers() const { return pointers_; }

  [[nodiscard]] Diagnostics notes() const {
    if (by_rule_) {
      return {
          {.severity = Severity::note,
           .message = fmt::format(
               "workspaces are by the documented rule: cuDNN is asked about {} pairs of a model "
               "and a card at most, and these are {}",
               most_pairs_asking_cudnn, pairs_),
           .hint = "fewer cards, or one, have cuDNN's own answers"}};
    }
    for (const CudnnWorkspaceSource* source : cudnn_) {
      if (Diagnostics notes = cudnn_notes(*source); !notes.empty()) return notes;
    }
    return {};
  }

 private:
  bool by_rule_ = false;
  std::size_t pairs_ = 0;
  std::vector<const CudnnWorkspaceSource*> cudnn_;
  std::vector<std::unique_ptr<WorkspaceSource>> kernels_, runtimes_;
  std::vector<WorkspaceSource*> pointers_;
};

CardAnswer of_all_replicas(CardAnswer answer, std::int64_t replicas) {
  for (std::int64_t* batch : {&answer.largest, &answer.recommended, &answer.needed_at}) {
    *batch *= replicas;
  }
  return answer;
}

void answer_rows(Cases& cases, bool keep_answers, std::vector<ComparedRow>& rows,
                 Diagnostics& notes) {
  const SourcesOfCases sources(cases.cases, keep_answers);
  const std::vector<Result<CardAnswer>> answers = compare_cards(cases.cases, sources.pointers());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ComparedRow& row = rows[cases.row[i]];
    if (answers[i]) {
      row.answer = of_all_replicas(*answers[i], replica_count(cases.cases[i].settings));
    } else {
      row.mistakes = answers[i].error();
    }
  }
  std::ranges::move(sources.notes(), std::back_inserter(notes));
}

Result<Answer> compared(const ComparisonRequest& request) {
  const Progress progress("comparing");
  const auto cards = compared_cards(request.card);
  if (!cards) return tl::unexpected(cards.error());
  const auto models =
      models_named(request.step.typed.positionals, request.step.model.configs.models());
  if (!models) return tl::unexpected(models.error());

  Comparison comparison{.asks_about_batch = request.asks_about_batch,
                        .models = models->size(),
                        .cards = cards->size()};
  Cases cases;
  for (const std::string& model : *models) {
    StepsOfModel steps(request, model);
    if (!steps.mistakes().empty()) {
      comparison.rows.push_back({.model = model, .mistakes = steps.mistakes()});
      continue;
    }
    for (const RequestedCard& card : *cards) {
      ComparedRow row{.model = model, .card = card.card};
      if (auto one = steps.on(card)) {
        cases.cases.push_back(*std::move(one));
        cases.row.push_back(comparison.rows.size());
      } else {
        row.mistakes = std::move(one.error());
      }
      comparison.rows.push_back(std::move(row));
    }
    if (const StepDocument* document = steps.document()) {
      comparison.steps.push_back({model, told_step(*document), document->warnings});
    }
  }
  for (const RequestedCard& card : *cards) {
    comparison.notes.insert(comparison.notes.end(), card.notes.begin(), card.notes.end());
  }
  answer_rows(cases, request.step.keep_answers, comparison.rows, comparison.notes);
  if (!cases.cases.empty()) comparison.runtime = cases.cases.front().settings.runtime;
  return comparison_answer(comparison);
}

}  // namespace

bool is_comparison(const StepRequest& step, const CardRequest& card) {
  const std::vector<std::string>& models = step.typed.positionals;
  return models.size() > 1 || card.name.find(',') != std::string::npos || is_all_cards(card.name) ||
         is_model_folder(step.model.source, step.model.configs.models());
}

Result<Answer> compare(const CheckRequest& request) {
  Diagnostics mistakes;
  if (request.eval_batch) {
    mistakes.push_back(command_line_error("--eval-batch is of one model on one card"));
  }
  if (request.rule_of_thumb) {
    mistakes.push_back(command_line_error("--rule-of-thumb is of one model on one card"));
  }
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  if (request.serving) return compare_serving(request);
  return compared({.step = request.step,
                   .card = request.card,
                   .batch = request.batch,
                   .asks_about_batch = true});
}

Result<Answer> compare(const BatchRequest& request) {
  if (request.global_batch) {
    return failure(command_line_error("--global-batch is of one model on one card"));
  }
  if (request.of) return compare_largest(request);
  return compared({.step = request.step,
                   .card = request.card,
                   .batch = std::nullopt,
                   .margin = request.margin});
}

}  // namespace stowage
