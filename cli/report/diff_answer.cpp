#include "cli/report/diff_answer.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "answers/planning/placement.hpp"

namespace stowage {

namespace {

constexpr std::size_t most_rows = 40;

Json totals_json(const Plan& plan) {
  const PlanTotals& totals = plan.totals;
  return Json::Object{{"name", plan.name},
                      {"step_seconds", totals.step_seconds},
                      {"cost_seconds", totals.cost_seconds},
                      {"h2d_bytes", totals.h2d},
                      {"d2h_bytes", totals.d2h},
                      {"pcie_bytes", totals.h2d + totals.d2h},
                      {"arena_bytes", totals.arena},
                      {"gpu_peak_bytes", totals.gpu_peak},
                      {"host_peak_bytes", totals.host_peak},
                      {"budget_bytes", plan.inputs.budget},
                      {"step_hash", plan.inputs.step_hash}};
}

Row totals_row(std::string which, const Plan& plan) {
  const PlanTotals& totals = plan.totals;
  return {{Duration{totals.step_seconds}, Duration{totals.cost_seconds}, totals.h2d, totals.d2h,
           totals.arena, totals.host_peak, std::move(which)}};
}

Table totals_table(const DiffQuestion& question, const Plan& before, const Plan& after) {
  Table table{.one_size_scale = true,
              .columns = {{"Step", "step_seconds"},
                          {"Cost", "cost_seconds"},
                          {"To GPU", "h2d_bytes"},
                          {"To host", "d2h_bytes"},
                          {"Arena", "arena_bytes"},
                          {"Pinned host", "host_peak_bytes"},
                          {"Plan", "plan"}}};
  const auto named = [](const std::string& file, const Plan& plan) {
    return fmt::format("{} ('{}', {})", file, plan.name, plan.inputs.card.name);
  };
  table.rows = {totals_row(named(question.before, before), before),
                totals_row(named(question.after, after), after)};
  return table;
}

std::string place_text(const NodePlace& place) {
  std::string text(device_word(place.device));
  if (place.beside_gpu) text += " beside the GPU";
  if (!place.engine.empty()) text += fmt::format(", {}", place.engine);
  return text;
}

Json place_json(const NodePlace& place) {
  return Json::Object{{"device", device_word(place.device)},
                      {"beside_gpu", place.beside_gpu},
                      {"engine", place.engine.empty() ? Json() : Json(place.engine)},
                      {"workspace_bytes", place.workspace}};
}

Json place_json(const StoragePlace& place) {
  return Json::Object{
      {"state", to_string(place.state)}, {"h2d_bytes", place.h2d}, {"d2h_bytes", place.d2h}};
}

Table nodes_table(const PlanComparison& comparison) {
  Table table{.columns = {{"Before", "before"}, {"After", "after"}, {"Operator", "name"}}};
  for (const NodeChange& change : comparison.nodes) {
    table.rows.push_back({{place_text(change.before), place_text(change.after), change.name}});
  }
  return table;
}

Table storages_table(const PlanComparison& comparison) {
  Table table{.one_size_scale = true,
              .columns = {{"Before", "before"},
                          {"After", "after"},
                          {"To GPU", "h2d_bytes_before"},
                          {"after", "h2d_bytes_after"},
                          {"To host", "d2h_bytes_before"},
                          {"after", "d2h_bytes_after"},
                          {"Storage", "name"}}};
  for (const StorageChange& change : comparison.storages) {
    table.rows.push_back(
        {{std::string(to_string(change.before.state)), std::string(to_string(change.after.state)),
          change.before.h2d, change.after.h2d, change.before.d2h, change.after.d2h, change.name}});
  }
  return table;
}

// What CSV holds: nodes and storages in one list.
Table all_changes(const PlanComparison& comparison) {
  Table table{.columns = {{"", "kind"},
                          {"", "before"},
                          {"", "after"},
                          {"", "h2d_bytes_before"},
                          {"", "h2d_bytes_after"},
                          {"", "d2h_bytes_before"},
                          {"", "d2h_bytes_after"},
                          {"", "name"}}};
  for (const NodeChange& change : comparison.nodes) {
    table.rows.push_back({{std::string("operator"), place_text(change.before),
                           place_text(change.after), Cell(), Cell(), Cell(), Cell(), change.name}});
  }
  for (const StorageChange& change : comparison.storages) {
    table.rows.push_back({{std::string("storage"), std::string(to_string(change.before.state)),
                           std::string(to_string(change.after.state)), change.before.h2d,
                           change.after.h2d, change.before.d2h, change.after.d2h, change.name}});
  }
  return table;
}

Json::Object comparison_json(const Plan& before, const Plan& after,
                             const PlanComparison& comparison) {
  Json::Array nodes, storages;
  for (const NodeChange& change : comparison.nodes) {
    nodes.emplace_back(Json::Object{{"name", change.name},
                                    {"before", place_json(change.before)},
                                    {"after", place_json(change.after)}});
  }
  for (const StorageChange& change : comparison.storages) {
    storages.emplace_back(Json::Object{{"name", change.name},
                                       {"bytes", change.bytes},
                                       {"before", place_json(change.before)},
                                       {"after", place_json(change.after)}});
  }
  return {{"same_step", comparison.same_step},
          {"before", totals_json(before)},
          {"after", totals_json(after)},
          {"nodes", std::move(nodes)},
          {"storages", std::move(storages)},
          {"only_before", Json::Object{{"nodes", comparison.nodes_only_before},
                                       {"storages", comparison.storages_only_before}}},
          {"only_after", Json::Object{{"nodes", comparison.nodes_only_after},
                                      {"storages", comparison.storages_only_after}}}};
}

void say_changes(const PlanComparison& comparison, bool verbose, Report& out) {
  const auto shown = [&](Table table) {
    return verbose ? std::move(table) : folded(std::move(table), most_rows);
  };
  if (comparison.nodes.empty() && comparison.storages.empty()) {
    out.say("\nnothing has moved", Tone::good);
    return;
  }
  if (!comparison.nodes.empty()) {
    out.say(fmt::format("\n{} of {} operators run elsewhere or with another engine:",
                        comparison.nodes.size(), comparison.compared_nodes));
    out.show(shown(nodes_table(comparison)));
  }
  if (!comparison.storages.empty()) {
    out.say(fmt::format("\n{} of {} storages are elsewhere or copied otherwise:",
                        comparison.storages.size(), comparison.compared_storages));
    out.show(shown(storages_table(comparison)));
  }
}

}  // namespace

RenderedAnswer rendered(const DiffAnswer& found, const DiffQuestion& question, bool verbose) {
  RenderedAnswer answer;
  Report& out = answer.report;
  out.json = comparison_json(found.before, found.after, found.comparison);
  out.listing = all_changes(found.comparison);
  out.notes = found.notes;
  out.show(totals_table(question, found.before, found.after));
  say_changes(found.comparison, verbose, out);
  return answer;
}

}  // namespace stowage
