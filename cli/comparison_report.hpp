// How a comparison is shown: a row a model and a card, and a line a model.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/request.hpp"
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
  std::string heading;  ///< "gpt2, seq 512, training with adamw, fp32"
};

struct Comparison {
  bool asks_about_batch = false;     ///< rows say what is needed at a batch that was asked about
  bool serves = false;               ///< rows say what is needed to serve, and search nothing
  std::optional<LargestOf> of = {};  ///< rows say the largest of these in place of the batch
  std::size_t models = 0, cards = 0;
  std::vector<ComparedRow> rows;  ///< model by model, card by card
  std::vector<ComparedStep> steps;
  std::optional<Runtime> runtime = {};
  Diagnostics notes;
};

[[nodiscard]] Answer comparison_answer(const Comparison& comparison);

}  // namespace stowage
