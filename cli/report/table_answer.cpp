#include "cli/report/table_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <variant>

#include "cli/options/setting_names.hpp"
#include "cli/output/diagnostics_json.hpp"
#include "cli/report/step_report.hpp"

namespace stowage {

namespace {

constexpr std::size_t most_headings = 4;

/// What the rows' numbers are of.
struct Quantity {
  std::string word;  ///< "batch", "context-length"
  std::string key;   ///< of JSON and CSV: "context_length"
};

Quantity quantity_of(const TableAnswer& found) {
  if (std::holds_alternative<TableOfServing>(found.cell)) return {"users", "users"};
  const auto* values = std::get_if<TableOfValues>(&found.cell);
  if (values == nullptr) return {"batch", "batch"};
  const std::string key(searched_quantity(values->of).setting);
  return {option_word(key), key};
}

/// Rows say what is needed at a value that was asked about, and not at the recommended one.
bool asks_about_value(const TableAnswer& found) {
  return std::holds_alternative<TableAtBatch>(found.cell) ||
         std::holds_alternative<TableOfServing>(found.cell);
}

std::string_view verdict_of(const TableRow& row) {
  if (!row.answer) return "no answer";
  return row.answer->fits ? "fits" : "does not fit";
}

Cell or_empty(const TableRow& row, std::int64_t CardAnswer::*value) {
  if (!row.answer || (*row.answer).*value == 0) return {};
  return (*row.answer).*value;
}

Table listing_of(const TableAnswer& found) {
  const Quantity quantity = quantity_of(found);
  Table table{.one_size_scale = true,
              .columns = {{"Card has", "total_bytes"},
                          {"Available", "available_bytes"},
                          {"Needed", "needed_bytes", true},
                          {fmt::format("At {}", quantity.word), "needed_at_" + quantity.key},
                          {"Verdict", "verdict"},
                          {fmt::format("Largest {}", quantity.word), "largest"},
                          {"Recommended", "recommended", true},
                          {"Card", "card"},
                          {"Model", "model"}}};
  for (const TableRow& row : found.rows) {
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
Table shown_table(const TableAnswer& found, Table table) {
  const auto drop = [&](std::string_view key) {
    const auto column = std::ranges::find(table.columns, key, &Column::key);
    const auto index = column - table.columns.begin();
    table.columns.erase(column);
    for (Row& row : table.rows) row.cells.erase(row.cells.begin() + index);
  };
  drop("available_bytes");
  if (!found.is_searched()) {
    for (const std::string_view searched : {"largest", "recommended"}) drop(searched);
  }
  if (found.models == 1) drop("model");
  return table;
}

Json row_json(const TableRow& row, const TableAnswer& found) {
  Json::Object object{{"model", row.model}, {"verdict", verdict_of(row)}, {"device", Json()}};
  if (row.card) {
    object.back().second =
        Json::Object{{"name", row.card->name}, {"total_bytes", row.card->cuda_total}};
  }
  if (!row.answer) {
    object.emplace_back("mistakes", diagnostics_array(in_options(row.mistakes)));
    return object;
  }
  const CardAnswer& answer = *row.answer;
  object.emplace_back("fits", answer.fits);
  object.emplace_back("available_bytes", answer.available);
  object.emplace_back("needed_bytes", answer.needed);
  object.emplace_back("needed_at_" + quantity_of(found).key, answer.needed_at);
  object.emplace_back("headroom_bytes", answer.headroom);
  if (!found.is_searched()) return object;
  object.emplace_back("largest", answer.largest);
  object.emplace_back("recommended", answer.recommended);
  object.emplace_back("keeps_margin", answer.keeps_margin);
  object.emplace_back("all_tried", answer.all_tried);
  object.emplace_back("unlimited", answer.unlimited);
  object.emplace_back("workspaces", to_string(answer.workspaces));
  return object;
}

/// The devices are the rows', and so are their bytes.
Json::Object json_of(const TableAnswer& found) {
  Json::Array rows;
  for (const TableRow& row : found.rows) rows.push_back(row_json(row, found));
  const bool all_fit = all_models_fit(found) && !has_mistakes(found);
  return {{"device", Json()},
          {"verdict", all_fit ? "fits" : "does_not_fit"},
          {"device_bytes", Json()},
          {"headroom_bytes", Json()},
          {"rows", std::move(rows)}};
}

std::string named_cache(const TableAnswer& found) {
  if (!found.serving) return "each model's usual cache";
  return fmt::format("{} cache", to_string(found.serving->cache));
}

/// Of serving, or of a quantity of it: "serving, users 4, context length 8192, paged cache".
std::string serving_heading(const TableAnswer& found, const ServingSettings& asked,
                            std::optional<LargestOf> of) {
  std::string text = "serving";
  if (of != LargestOf::users) text += fmt::format(", users {}", asked.users);
  if (of != LargestOf::context_length) {
    text += fmt::format(", context length {}", asked.context_length);
  }
  text += fmt::format(", {}", named_cache(found));
  if (asked.format != CacheFormat::model) {
    text += fmt::format(", stored as {}", to_string(asked.format));
  }
  return text;
}

/// Above the table where no step is described; empty: its steps are.
std::string heading_of(const TableAnswer& found) {
  if (const auto* serving = std::get_if<TableOfServing>(&found.cell)) {
    return serving_heading(found, serving->settings, std::nullopt);
  }
  const auto* values = std::get_if<TableOfValues>(&found.cell);
  if (values == nullptr) return {};
  return values->serving ? serving_heading(found, *values->serving, values->of)
                         : fmt::format("batch {}", values->batch.value_or(1));
}

void say_headings(const TableAnswer& found, Report& out) {
  const std::string runtime =
      found.runtime ? fmt::format(", {} runtime", to_string(*found.runtime)) : "";
  if (found.models <= most_headings) {
    for (const TableStep& step : found.steps) {
      out.say(describe_step(step.step, std::nullopt) + runtime, Tone::heading);
    }
  }
  if (const std::string heading = heading_of(found); !heading.empty()) {
    out.say(heading + runtime, Tone::heading);
  }
}

void say_model(const TableAnswer& found, const std::string& model, Report& out) {
  const TableTally tally = tally_of(found, model);
  if (tally.answers == 0) {
    out.say(fmt::format("{} has no answer", model), Tone::bad);
    return;
  }
  if (tally.fits == 0) {
    out.say(fmt::format("{} fits none of the {} cards", model, found.cards), Tone::bad);
    return;
  }
  out.say(fmt::format("{} fits {} of {} cards; the smallest is {}, {}", model, tally.fits,
                      found.cards, tally.smallest->name, format_bytes(tally.smallest->cuda_total)),
          Tone::good);
}

// Nothing where every recommended value leaves the margin.
void say_margin(const TableAnswer& found, Report& out) {
  const TableRow* first = nullptr;
  std::size_t count = 0;
  for (const TableRow& row : found.rows) {
    if (!row.answer || row.answer->recommended == 0 || row.answer->keeps_margin) continue;
    if (first == nullptr) first = &row;
    ++count;
  }
  if (count == 0) return;
  const std::string more =
      count > 1 ? fmt::format(" and in {} more row{}", count - 1, count > 2 ? "s" : "") : "";
  out.say(fmt::format("on {}{} no {} leaves the margin: the recommended one leaves less",
                      first->card->name, more, quantity_of(found).word));
}

void say_needed_at(const TableAnswer& found, Report& out) {
  if (asks_about_value(found)) return;
  const Quantity quantity = quantity_of(found);
  out.say(quantity.key == "batch"
              ? std::string("(needed at the recommended batch; at 1 where not even one sample "
                            "fits)")
              : fmt::format("(needed at the recommended {}; at 1 where not even that fits)",
                            quantity.word));
}

void say_models(const TableAnswer& found, Report& out) {
  const std::vector<std::string> models = models_of(found);
  if (found.cards > 1) {
    for (const std::string& model : models) say_model(found, model, out);
  }
  if (models.size() <= 1) return;
  const auto with_a_card = std::ranges::count_if(
      models, [&](const std::string& model) { return tally_of(found, model).fits > 0; });
  out.say(fmt::format("{} of {} models fit {}", with_a_card, models.size(),
                      found.cards > 1 ? "a card" : "the card"),
          all_models_fit(found) ? Tone::good : Tone::bad);
}

}  // namespace

RenderedAnswer rendered(const TableAnswer& found) {
  RenderedAnswer answer;
  Report& out = answer.report;
  out.notes = found.notes;
  out.json = json_of(found);
  out.listing = listing_of(found);
  say_headings(found, out);
  out.show(shown_table(found, out.listing));
  say_needed_at(found, out);
  say_margin(found, out);
  say_models(found, out);
  answer.exit_code = has_mistakes(found)     ? ExitCode::bad_input
                     : all_models_fit(found) ? ExitCode::yes
                                             : ExitCode::clean_no;
  return answer;
}

}  // namespace stowage
