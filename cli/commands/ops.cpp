#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/commands/commands.hpp"
#include "cli/options/arguments.hpp"
#include "cli/report/operator_reference.hpp"
#include "estimator/catalogue/operator_example.hpp"
#include "estimator/catalogue/operator_kernels.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/step/kernel_table.hpp"

namespace stowage {

namespace {

Json json_of(const OperatorKernel& call) {
  Json::Object object{{"time", to_string(call.time)}, {"kernel", to_string(call.kernel)}};
  for (const KernelDevice device : kernel_devices) {
    Json::Array types;
    for (const DataType type : kernel_types(call.kernel, device)) {
      types.emplace_back(to_string(type));
    }
    object.emplace_back(to_string(device), std::move(types));
  }
  const std::string_view why = no_device_reason(call.kernel);
  object.emplace_back("why_nowhere", why.empty() ? Json() : Json(why));
  return object;
}

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
  for (const KernelSet set : all_kernel_sets) {
    if (rules_of(row, set).forward != nullptr) kernel_sets.emplace_back(to_string(set));
  }
  Json::Array kernels;
  for (const OperatorKernel& call : operator_kernels(row)) kernels.push_back(json_of(call));
  return Json::Object{{"name", row.name},
                      {"doc", row.doc},
                      {"min_inputs", row.min_inputs},
                      {"max_inputs", row.max_inputs < 0 ? Json() : Json(row.max_inputs)},
                      {"attributes", std::move(attributes)},
                      {"is_loss", row.is_loss},
                      {"autocast", to_string(row.autocast)},
                      {"kernel_sets", std::move(kernel_sets)},
                      {"example", example_lines(row)},
                      {"kernels", std::move(kernels)}};
}

// Of the operator's example, one row a kernel.
void show_kernels(const OperatorRow& row, Report& report) {
  std::string example;
  for (const std::string_view line : lines_of(example_lines(row))) {
    example += fmt::format("\n    {}", line);
  }
  report.say(fmt::format("  for example, behind a layer {}:{}",
                         row.is_loss ? "'head', under 'loss:'" : "'stem'", example));
  Table table{.columns = {{"Called in", "time"}}};
  for (const KernelDevice device : kernel_devices) {
    table.columns.push_back(
        {fmt::format("On {}", to_string(device)), std::string(to_string(device))});
  }
  table.columns.push_back({"Kernel", "kernel"});
  std::string_view why;
  for (const OperatorKernel& call : operator_kernels(row)) {
    Row cells{{std::string(to_string(call.time))}};
    for (const KernelDevice device : kernel_devices) {
      cells.cells.emplace_back(types_text(call.kernel, device));
    }
    cells.cells.emplace_back(std::string(to_string(call.kernel)));
    table.rows.push_back(std::move(cells));
    why = std::max(why, no_device_reason(call.kernel));
  }
  if (table.rows.empty()) {
    report.say("  our executor calls no kernel for it");
  } else {
    report.show(std::move(table));
  }
  if (!why.empty()) report.say(fmt::format("  it runs nowhere: {}", why));
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
  show_kernels(row, report);
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

Result<RenderedAnswer> run_ops(const TopicRequest& request) {
  RenderedAnswer answer;
  if (request.topic.empty()) {
    Json::Array rows;
    for (const OperatorRow& row : operator_catalogue()) rows.push_back(json_of(row));
    answer.report.json = {{"ops", std::move(rows)}};
    if (request.format == Format::markdown) answer.report.raw = operator_reference();
    list(answer.report);
    return answer;
  }
  const std::string& name = request.topic;
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
