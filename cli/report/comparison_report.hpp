// How a comparison is shown: a row a model and a card, and a line a model.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/command.hpp"
#include "cli/report/step_report.hpp"
#include "estimator/base/runtime.hpp"
#include "estimator/card/card.hpp"
#include "estimator/check/compare_cards.hpp"

namespace stowage {

struct ComparedRow {
  std::string model;              ///< as typed, or a file of a folder
  std::optional<Card> card = {};  ///< none: the model could not be read at all
  std::optional<CardAnswer> answer = {};
  Diagnostics mistakes = {};  ///< why there is no answer
};

struct ComparedStep {
  std::string model;
  ToldStep told;
  Diagnostics warnings = {};
};

/// What the rows' numbers are of.
struct ComparedQuantity {
  std::string_view noun = "batch", key = "batch";
  bool is_searched = true;  ///< else there is no largest and no recommended one
};

struct Comparison {
  bool asks_about_batch = false;  ///< rows say what is needed at a batch that was asked about
  std::size_t models = 0, cards = 0;
  std::vector<ComparedRow> rows = {};  ///< model by model, card by card
  std::vector<ComparedStep> steps = {};
  std::optional<Runtime> runtime = {};
  Diagnostics notes = {};  ///< of the cards, or of the comparison as a whole
  ComparedQuantity quantity = {};
  std::string heading = {};  ///< above the table, where no step is told
};

[[nodiscard]] Answer comparison_answer(const Comparison& comparison);

}  // namespace stowage
