#include "answers/table/table.hpp"

#include <algorithm>
#include <variant>

#include "answers/table/batch_table.hpp"
#include "answers/table/compared_cards.hpp"
#include "answers/table/compared_models.hpp"
#include "answers/table/quantity_table.hpp"

namespace stowage {

TableTally tally_of(const TableAnswer& table, const std::string& model) {
  TableTally tally;
  for (const TableRow& row : table.rows) {
    if (row.model != model) continue;
    tally.answers += row.answer ? 1 : 0;
    if (!row.answer || !row.answer->fits) continue;
    ++tally.fits;
    if (tally.smallest == nullptr || row.card->cuda_total < tally.smallest->cuda_total) {
      tally.smallest = &*row.card;
    }
  }
  return tally;
}

std::vector<std::string> models_of(const TableAnswer& table) {
  std::vector<std::string> models;
  for (const TableRow& row : table.rows) {
    if (models.empty() || models.back() != row.model) models.push_back(row.model);
  }
  return models;
}

bool all_models_fit(const TableAnswer& table) {
  return std::ranges::all_of(
      models_of(table), [&](const std::string& model) { return tally_of(table, model).fits > 0; });
}

bool has_mistakes(const TableAnswer& table) {
  return std::ranges::any_of(table.rows, [](const TableRow& row) { return !row.mistakes.empty(); });
}

bool asks_for_table(const std::vector<std::string>& models, const ConfigDirectory& configs,
                    const CardQuestion& card) {
  return models.size() > 1 || names_several_cards(card) ||
         (models.size() == 1 && is_model_folder(models.front(), configs.models()));
}

Result<TableAnswer> answer(const TableQuestion& question) {
  const auto cards = compared_cards(question.cards);
  if (!cards) return tl::unexpected(cards.error());
  const auto models = models_named(question.models, question.step.model.configs.models());
  if (!models) return tl::unexpected(models.error());
  const bool about_batches = std::holds_alternative<TableAtBatch>(question.cell) ||
                             std::holds_alternative<TableOfBatches>(question.cell);
  return about_batches ? table_of_batches(question, *models, *cards)
                       : table_of_quantity(question, *models, *cards);
}

}  // namespace stowage
