// What fits where: several models, several cards, or both, as one table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "answers/question/card_question.hpp"
#include "answers/question/step_question.hpp"
#include "answers/sizing/largest_value.hpp"
#include "answers/sizing/step_summary.hpp"
#include "estimator/check/compare_cards.hpp"

namespace stowage {

/// How each step does at one batch.
struct TableAtBatch {
  std::optional<std::int64_t> batch;  ///< absent: a step file's own, or 1
};
/// The largest batch of each step.
struct TableOfBatches {
  std::optional<Bytes> margin;  ///< that the recommended batch leaves
};
/// How each model serves.
struct TableOfServing {
  ServingSettings settings;
};
/// The largest value of a quantity of each model.
struct TableOfValues {
  LargestOf of = LargestOf::users;
  std::optional<ServingSettings> serving;  ///< with users and context_length
  std::optional<std::int64_t> batch;       ///< with seq; absent: 1
  std::optional<Bytes> margin;             ///< that the recommended value leaves
};
using TableCell = std::variant<TableAtBatch, TableOfBatches, TableOfServing, TableOfValues>;

struct TableQuestion {
  StepQuestion step;                ///< its model's source is not looked at
  std::vector<std::string> models;  ///< sources as ModelQuestion has them, or folders of models
  CardQuestion cards;               ///< one or several
  TableCell cell;
};

struct TableRow {
  std::string model;              ///< as asked for, or a file of a folder
  std::optional<Card> card = {};  ///< none: the model could not be read at all
  std::optional<CardAnswer> answer = {};
  Diagnostics mistakes = {};  ///< why there is no answer
};

struct TableStep {
  std::string model;
  StepSummary step;
};

struct TableAnswer {
  TableCell cell;
  std::size_t models = 0, cards = 0;
  std::vector<TableRow> rows;    ///< model by model, card by card
  std::vector<TableStep> steps;  ///< one a model that could be lowered; none of serving and values
  std::optional<Runtime> runtime;
  /// Of serving: its settings with the usual cache of the only model, or none, where each model has
  /// its own.
  std::optional<ServingSettings> serving;
  /// What the models share is said once (compared_notes.hpp); then of the cards and the workspaces.
  Diagnostics notes;

  /// Whether rows have a largest and a recommended value.
  [[nodiscard]] bool is_searched() const { return !std::holds_alternative<TableOfServing>(cell); }
};

/// What a model of a table comes to.
struct TableTally {
  std::size_t fits = 0, answers = 0;
  const Card* smallest = nullptr;  ///< of those that it fits
};
[[nodiscard]] TableTally tally_of(const TableAnswer& table, const std::string& model);
/// Each once, in the order of the rows.
[[nodiscard]] std::vector<std::string> models_of(const TableAnswer& table);
/// Every model fits at least one of the cards.
[[nodiscard]] bool all_models_fit(const TableAnswer& table);
[[nodiscard]] bool has_mistakes(const TableAnswer& table);

/// Whether the question about one model and one card is a table's: several models, a folder of
/// them, several cards.
[[nodiscard]] bool asks_for_table(const std::vector<std::string>& models,
                                  const ConfigDirectory& configs, const CardQuestion& card);

/// A model that cannot be read, or not be sized, has rows that say so. cuDNN is asked for at most
/// most_pairs_asking_cudnn rows; of more, all are by the documented rule of workspaces, and so are
/// those of serving and values; the notes say so.
/// Errors: a card that is not known or does not go into a table, a folder without models.
[[nodiscard]] Result<TableAnswer> answer(const TableQuestion& question);

}  // namespace stowage
