#include "cli/report/comparison_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/output/diagnostics_json.hpp"
#include "cli/report/compared_notes.hpp"

namespace stowage {

namespace {

constexpr std::size_t most_headings = 4;

std::string_view verdict_of(const ComparedRow& row) {
  if (!row.answer) return "no answer";
  return row.answer->fits ? "fits" : "does not fit";
}

Cell or_empty(const ComparedRow& row, std::int64_t CardAnswer::*batch) {
  if (!row.answer || (*row.answer).*batch == 0) return {};
  return (*row.answer).*batch;
}

/// The key of the column and of the JSON member: "needed_at_batch".
std::string needed_at(const Comparison& comparison) {
  std::string key(comparison.quantity.key);
  std::ranges::replace(key, '-', '_');
  return "needed_at_" + key;
}

Table comparison_table(const Comparison& comparison) {
  Table table{.one_size_scale = true,
              .columns = {{"Card has", "total_bytes"},
                          {"Available", "available_bytes"},
                          {"Needed", "needed_bytes"},
                          {fmt::format("At {}", comparison.quantity.noun), needed_at(comparison)},
                          {"Verdict", "verdict"},
                          {fmt::format("Largest {}", comparison.quantity.noun), "largest"},
                          {"Recommended", "recommended"},
                          {"Card", "card"},
                          {"Model", "model"}}};
  for (const ComparedRow& row : comparison.rows) {
    table.rows.push_back(
        {{row.card ? Cell(row.card->cuda_total) : Cell(),
          row.answer ? Cell(row.answer->available) : Cell(),
          row.answer ? Cell(row.answer->needed) : Cell(), or_empty(row, &CardAnswer::needed_at),
          std::string(verdict_of(row)), or_empty(row, &CardAnswer::largest),
          or_empty(row, &CardAnswer::recommended), row.card ? Cell(row.card->name) : Cell(),
          row.model}});
  }
  return table;
}

// What is alike in all rows is said once, above or below them.
Table shown_table(const Comparison& comparison, Table table) {
  const auto drop = [&](std::string_view key) {
    const auto column = std::ranges::find(table.columns, key, &Column::key);
    const auto index = column - table.columns.begin();
    table.columns.erase(column);
    for (Row& row : table.rows) row.cells.erase(row.cells.begin() + index);
  };
  drop("available_bytes");
  if (!comparison.quantity.is_searched) {
    for (const std::string_view searched : {"largest", "recommended"}) drop(searched);
  }
  if (comparison.models == 1) drop("model");
  return table;
}

Json row_json(const ComparedRow& row, const Comparison& comparison) {
  Json::Object object{{"model", row.model}, {"verdict", verdict_of(row)}, {"device", Json()}};
  if (row.card) {
    object.back().second =
        Json::Object{{"name", row.card->name}, {"total_bytes", row.card->cuda_total}};
  }
  if (!row.answer) {
    object.emplace_back("mistakes", diagnostics_array(row.mistakes));
    return object;
  }
  const CardAnswer& answer = *row.answer;
  object.emplace_back("fits", answer.fits);
  object.emplace_back("available_bytes", answer.available);
  object.emplace_back("needed_bytes", answer.needed);
  object.emplace_back(needed_at(comparison), answer.needed_at);
  object.emplace_back("headroom_bytes", answer.headroom);
  if (!comparison.quantity.is_searched) return object;
  object.emplace_back("largest", answer.largest);
  object.emplace_back("recommended", answer.recommended);
  object.emplace_back("keeps_margin", answer.keeps_margin);
  object.emplace_back("all_tried", answer.all_tried);
  object.emplace_back("unlimited", answer.unlimited);
  object.emplace_back("workspaces", to_string(answer.workspaces));
  return object;
}

struct Tally {
  std::size_t fits = 0, answers = 0, rows = 0;
  const Card* smallest = nullptr;  ///< of those that it fits
};

Tally tally_of(const Comparison& comparison, std::string_view model) {
  Tally tally;
  for (const ComparedRow& row : comparison.rows) {
    if (row.model != model) continue;
    ++tally.rows;
    tally.answers += row.answer ? 1 : 0;
    if (!row.answer || !row.answer->fits) continue;
    ++tally.fits;
    if (tally.smallest == nullptr || row.card->cuda_total < tally.smallest->cuda_total) {
      tally.smallest = &*row.card;
    }
  }
  return tally;
}

std::vector<std::string> models_in_order(const Comparison& comparison) {
  std::vector<std::string> models;
  for (const ComparedRow& row : comparison.rows) {
    if (models.empty() || models.back() != row.model) models.push_back(row.model);
  }
  return models;
}

void say_model(const Comparison& comparison, const std::string& model, Report& out) {
  const Tally tally = tally_of(comparison, model);
  if (tally.answers == 0) {
    out.say(fmt::format("{} has no answer", model), Tone::bad);
    return;
  }
  if (tally.fits == 0) {
    out.say(fmt::format("{} fits none of the {} cards", model, comparison.cards), Tone::bad);
    return;
  }
  out.say(
      fmt::format("{} fits {} of {} cards; the smallest is {}, {}", model, tally.fits,
                  comparison.cards, tally.smallest->name, format_bytes(tally.smallest->cuda_total)),
      Tone::good);
}

// Nothing where every recommended batch leaves the margin.
void say_margin(const Comparison& comparison, Report& out) {
  const ComparedRow* first = nullptr;
  std::size_t count = 0;
  for (const ComparedRow& row : comparison.rows) {
    if (!row.answer || row.answer->recommended == 0 || row.answer->keeps_margin) continue;
    if (first == nullptr) first = &row;
    ++count;
  }
  if (count == 0) return;
  const std::string more =
      count > 1 ? fmt::format(" and in {} more row{}", count - 1, count > 2 ? "s" : "") : "";
  out.say(fmt::format("on {}{} no {} leaves the margin: the recommended one leaves less",
                      first->card->name, more, comparison.quantity.noun));
}

// What the rows and steps of each model have to be told, a model's once.
std::vector<ToldOfModel> told_of_models(const Comparison& comparison) {
  std::vector<ToldOfModel> told;
  for (const ComparedRow& row : comparison.rows) {
    if (!row.mistakes.empty()) told.push_back({row.model, row.mistakes});
  }
  for (const ComparedStep& step : comparison.steps) told.push_back({step.model, step.warnings});
  return told;
}

}  // namespace

Answer comparison_answer(const Comparison& comparison) {
  Answer answer;
  Report& out = answer.report;
  out.notes = compared_notes(told_of_models(comparison), comparison.models);
  out.notes.insert(out.notes.end(), comparison.notes.begin(), comparison.notes.end());
  Json::Array rows;
  for (const ComparedRow& row : comparison.rows) rows.push_back(row_json(row, comparison));
  out.json.emplace_back("rows", std::move(rows));

  const std::string runtime =
      comparison.runtime ? fmt::format(", {} runtime", to_string(*comparison.runtime)) : "";
  if (comparison.models <= most_headings) {
    for (const ComparedStep& step : comparison.steps) {
      out.say(describe_step(step.told, std::nullopt) + runtime, Tone::heading);
    }
  }
  if (!comparison.heading.empty()) out.say(comparison.heading + runtime, Tone::heading);
  out.listing = comparison_table(comparison);
  out.show(shown_table(comparison, out.listing));
  if (!comparison.asks_about_batch) {
    out.say(comparison.quantity.key == "batch"
                ? std::string("(needed at the recommended batch; at 1 where not even one sample "
                              "fits)")
                : fmt::format("(needed at the recommended {}; at 1 where not even that fits)",
                              comparison.quantity.noun));
  }
  say_margin(comparison, out);
  std::size_t with_a_card = 0;
  const std::vector<std::string> models = models_in_order(comparison);
  for (const std::string& model : models) {
    if (comparison.cards > 1) say_model(comparison, model, out);
    with_a_card += tally_of(comparison, model).fits > 0 ? 1 : 0;
  }
  const bool all_have_a_card = with_a_card == models.size();
  if (models.size() > 1) {
    out.say(fmt::format("{} of {} models fit {}", with_a_card, models.size(),
                        comparison.cards > 1 ? "a card" : "the card"),
            all_have_a_card ? Tone::good : Tone::bad);
  }
  const bool any_mistake = std::ranges::any_of(
      comparison.rows, [](const ComparedRow& row) { return !row.mistakes.empty(); });
  answer.exit_code = any_mistake       ? ExitCode::bad_input
                     : all_have_a_card ? ExitCode::yes
                                       : ExitCode::clean_no;
  return answer;
}

}  // namespace stowage
