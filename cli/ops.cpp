#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/operator_reference.hpp"
#include "estimator/catalogue/operator_row.hpp"

namespace stowage {

namespace {

Json json_of(const OperatorRow& row) {
  Json::Array attributes;
  for (const AttributeSpec& attribute : row.attributes) {
    const Json fallback =
        attribute.default_value ? Json(to_string(*attribute.default_value)) : Json();
    attributes.emplace_back(Json::Object{{"name", attribute.name},
                                         {"type", type_text(attribute)},
                                         {"default", fallback},
                                         {"bounds", bounds_text(attribute)},
                                         {"doc", attribute.doc}});
  }
  Json::Array kernel_sets;
  for (std::size_t set = 0; set < kernel_set_count; ++set) {
    if (row.lowering[set].forward != nullptr) {
      kernel_sets.emplace_back(to_string(static_cast<KernelSet>(set)));
    }
  }
  return Json::Object{{"name", row.name},
                      {"doc", row.doc},
                      {"min_inputs", row.min_inputs},
                      {"max_inputs", row.max_inputs < 0 ? Json() : Json(row.max_inputs)},
                      {"attributes", std::move(attributes)},
                      {"is_loss", row.is_loss},
                      {"autocast", to_string(row.autocast)},
                      {"kernel_sets", std::move(kernel_sets)}};
}

void describe(const OperatorRow& row, Report& report) {
  report.say(fmt::format("{}: {}", row.name, row.doc), Tone::heading);
  report.say(fmt::format("  inputs: {}\n  format under autocast: {}", inputs_text(row),
                         autocast_text(row)));
  Table table{.columns = {{"Attribute", "attribute"},
                          {"Type", "type"},
                          {"Default", "default"},
                          {"Bounds", "bounds"},
                          {"Meaning", "meaning"}}};
  for (const AttributeSpec& attribute : row.attributes) {
    table.rows.push_back(
        {{std::string(attribute.name), type_text(attribute), default_text(attribute),
          bounds_text(attribute), std::string(attribute.doc)}});
  }
  report.listing = table;
  if (!table.rows.empty()) report.show(std::move(table));
}

void list(Report& report) {
  Table table{.columns = {{"Operator", "operator"},
                          {"Inputs", "inputs"},
                          {"Attributes", "attributes"},
                          {"Meaning", "meaning"}}};
  for (const OperatorRow& row : operator_catalogue()) {
    std::vector<std::string_view> names;
    for (const AttributeSpec& attribute : row.attributes) names.push_back(attribute.name);
    table.rows.push_back({{std::string(row.name), inputs_text(row),
                           fmt::format("{}", fmt::join(names, " ")), std::string(row.doc)}});
  }
  report.listing = table;
  report.show(std::move(table));
}

}  // namespace

Result<Answer> run_ops(const Arguments& arguments) {
  Answer answer;
  if (arguments.positionals().empty()) {
    Json::Array rows;
    for (const OperatorRow& row : operator_catalogue()) rows.push_back(json_of(row));
    answer.report.json = {{"ops", std::move(rows)}};
    if (arguments.text("format") == "markdown") answer.report.raw = operator_reference();
    list(answer.report);
    return answer;
  }
  const std::string& name = arguments.positionals().front();
  const OperatorRow* row = find_operator(name);
  if (row == nullptr) {
    std::vector<std::string_view> names;
    for (const OperatorRow& candidate : operator_catalogue()) names.push_back(candidate.name);
    std::string hint = did_you_mean(name, names);
    if (hint.empty()) hint = "stowage ops lists them";
    return failure(command_line_error(fmt::format("there is no operator '{}'", name), hint));
  }
  answer.report.json = {{"ops", Json::Array{json_of(*row)}}};
  describe(*row, answer.report);
  return answer;
}

}  // namespace stowage
