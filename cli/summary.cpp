#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "cli/commands.hpp"
#include "cli/settings.hpp"
#include "estimator/catalogue/operator_row.hpp"

namespace stowage {

namespace {

struct Layer {
  std::string name;
  std::string_view op;
  Shape output;
  std::int64_t parameters = 0;
};

// A tied parameter counts at its first owner, so that the rows add up to the model's.
std::vector<Layer> layers_of(const ModelGraph& model) {
  std::vector<Layer> layers;
  std::set<ParameterId> counted;
  for (const Operator& op : model.operators) {
    Layer layer{.name = op.name, .op = op.row->name};
    if (!op.outputs.empty()) layer.output = model.tensor(op.outputs.front()).type.shape;
    for (const ParameterId id : op.parameters) {
      const Parameter& parameter = model.parameter(id);
      if (parameter.is_buffer || !counted.insert(id).second) continue;
      layer.parameters += element_count(parameter.type.shape).constant;
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::string shape_text(const Shape& shape, std::optional<std::int64_t> batch) {
  return batch ? fmt::format("[{}]", fmt::join(at_batch(shape, *batch), ", ")) : to_string(shape);
}

Bytes parameter_bytes(const ModelGraph& model, bool buffers) {
  Bytes sum;
  for (const Parameter& parameter : model.parameters) {
    if (parameter.is_buffer != buffers) continue;
    sum += Bytes(element_count(parameter.type.shape).constant) * element_size(parameter.type.type);
  }
  return sum;
}

Table listing(const std::vector<Layer>& layers, std::optional<std::int64_t> batch) {
  Table table{.columns = {{"Parameters", "parameters"},
                          {"Output shape", "output_shape"},
                          {"Operator", "op"},
                          {"Layer", "name"}}};
  for (const Layer& layer : layers) {
    table.rows.push_back(
        {{layer.parameters, shape_text(layer.output, batch), std::string(layer.op), layer.name}});
  }
  return table;
}

Json::Object json_of(const ModelGraph& model, const std::vector<Layer>& layers,
                     std::int64_t batch) {
  Json::Array rows;
  for (const Layer& layer : layers) {
    Json::Array shape;
    for (const std::int64_t extent : at_batch(layer.output, batch)) shape.emplace_back(extent);
    rows.emplace_back(Json::Object{{"name", layer.name},
                                   {"op", layer.op},
                                   {"output_shape", std::move(shape)},
                                   {"parameters", layer.parameters}});
  }
  return {{"model", Json::Object{{"name", model.name},
                                 {"source", model.source},
                                 {"parameters", parameter_count(model)},
                                 {"trainable_parameters", trainable_parameter_count(model)},
                                 {"parameter_bytes", parameter_bytes(model, false)},
                                 {"buffer_bytes", parameter_bytes(model, true)}}},
          {"batch", batch},
          {"layers", std::move(rows)}};
}

}  // namespace

Result<Answer> run_summary(const Arguments& arguments) {
  const auto configs = find_configs(arguments);
  if (!configs) return tl::unexpected(configs.error());
  auto requested = requested_model(arguments, *configs);
  if (!requested) return tl::unexpected(std::move(requested.error()));
  const ModelGraph& model = requested->graph;

  const std::vector<Layer> layers = layers_of(model);
  const auto batch =
      arguments.given("batch") ? arguments.integer("batch") : std::optional<std::int64_t>();

  Answer answer;
  Report& report = answer.report;
  report.notes = model.warnings;
  report.listing = listing(layers, batch);
  report.json = json_of(model, layers, arguments.integer("batch").value_or(1));

  const std::int64_t all = parameter_count(model);
  const std::int64_t trainable = trainable_parameter_count(model);
  report.say(model.source.empty() ? model.name : fmt::format("{} ({})", model.name, model.source),
             Tone::heading);
  Table table = report.listing;
  table.rows.push_back({{all, std::string(), std::string(), std::string("all")}, true});
  report.show(std::move(table));
  report.say("");
  Table totals{.columns = {{"", "count"}, {"", "bytes"}, {"", "name"}}};
  totals.rows.push_back({{all, parameter_bytes(model, false), std::string("parameters")}});
  totals.rows.push_back({{trainable, std::monostate{}, std::string("of them trainable")}});
  totals.rows.push_back({{std::monostate{}, parameter_bytes(model, true), std::string("buffers")}});
  report.show(std::move(totals));
  return answer;
}

}  // namespace stowage
