#include "cli/report/placement_report.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace stowage {

namespace {

std::string_view word_for(PlacedKind kind) {
  switch (kind) {
    case PlacedKind::kernel:
      return "operator";
    case PlacedKind::variable:
      return "variable";
    case PlacedKind::storage:
      break;
  }
  return "storage";
}

}  // namespace

Table placement_table(const std::vector<PlacedRow>& rows) {
  Table table{.columns = {{"Device", "device"},
                          {"Kind", "kind"},
                          {"Size", "bytes"},
                          {"Reason", "reason"},
                          {"Name", "name"}}};
  for (const PlacedRow& row : rows) {
    table.rows.push_back(
        {{std::string(row.device), std::string(word_for(row.kind)),
          row.bytes > Bytes() ? Cell(row.bytes) : Cell(), in_words(row.reason), row.name}});
  }
  return table;
}

Json placement_json(const std::vector<PlacedRow>& rows) {
  Json::Array array;
  for (const PlacedRow& row : rows) {
    const PlacementReason& reason = row.reason;
    array.emplace_back(
        Json::Object{{"name", row.name},
                     {"kind", word_for(row.kind)},
                     {"device", row.device},
                     {"bytes", row.kind == PlacedKind::kernel ? Json() : Json(row.bytes)},
                     {"cause", to_string(reason.cause)},
                     {"pin", reason.pin.empty() ? Json() : Json(reason.pin)},
                     {"seconds", reason.seconds},
                     {"reason", in_words(reason)}});
  }
  return array;
}

Result<void> add_placement_log(const Plan& plan, Report& report) {
  const auto rows = placement_log(plan);
  if (!rows) return tl::unexpected(rows.error());
  report.json.emplace_back("placement", placement_json(*rows));
  report.say(fmt::format("\nPlacement of '{}': operators, variables, and what else leaves the GPU",
                         plan.name),
             Tone::heading);
  report.listing = placement_table(*rows);
  report.show(report.listing);
  return {};
}

}  // namespace stowage
