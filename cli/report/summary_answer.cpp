#include "cli/report/summary_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>

#include "cli/report/step_report.hpp"

namespace stowage {

namespace {

bool trains(const Footprint& footprint) { return footprint.graph->settings.mode == Mode::train; }

std::string peak_at(const Footprint& footprint) {
  const auto& nodes = footprint.graph->nodes;
  const auto step = static_cast<std::size_t>(footprint.step);
  return step < nodes.size() ? nodes[step].name : std::string();
}

Json memory_json(const Footprint& footprint, std::int64_t batch,
                 const std::optional<MissingUpdate>& missing) {
  Json::Object classes;
  for (int c = 0; c < storage_class_count; ++c) {
    classes.emplace_back(to_string(static_cast<StorageClass>(c)),
                         footprint.by_class[static_cast<std::size_t>(c)]);
  }
  const LoweringSettings& settings = footprint.graph->settings;
  const bool updates = trains(footprint) && !(missing && missing->is_whole);
  return Json::Object{{"batch", batch},
                      {"mode", to_string(settings.mode)},
                      {"optimizer", updates ? Json(settings.optimizer.name) : Json()},
                      {"not_updated", missing_update_json(missing)},
                      {"peak_tensor_bytes", footprint.total},
                      {"at", peak_at(footprint)},
                      {"footprint", std::move(classes)}};
}

void say_memory(const Footprint& footprint, std::int64_t batch,
                const std::optional<MissingUpdate>& missing, Report& out) {
  const std::string step =
      trains(footprint)
          ? fmt::format("Training {}", update_text(footprint.graph->settings.optimizer, missing))
          : std::string("Inference");
  out.say(fmt::format("\n{}, batch {}: live at the peak, while {} runs:", step,
                      grouped_digits(batch), peak_at(footprint)));
  Table table{.columns = {{"", "bytes"}, {"", "name"}}};
  for (int c = 0; c < storage_class_count; ++c) {
    const Bytes bytes = footprint.by_class[static_cast<std::size_t>(c)];
    if (bytes == Bytes()) continue;
    table.rows.push_back({{bytes, spaced(to_string(static_cast<StorageClass>(c)))}});
  }
  table.rows.push_back({{footprint.total, std::string("tensors")}, true});
  out.show(std::move(table));
}

std::string shape_text(const SummaryLayer& layer, const std::optional<std::int64_t>& batch) {
  return batch ? fmt::format("[{}]", fmt::join(layer.output_at_batch, ", "))
               : to_string(layer.output);
}

Cell giga(double flops) { return Number{flops / 1e9, 3}; }

Table listing_of(const ModelSummary& found) {
  Table table{.columns = {{"Parameters", "parameters"},
                          {"Output shape", "output_shape"},
                          {"Operator", "op"},
                          {"Layer", "name"}}};
  if (found.has_costs) {
    table.columns.insert(table.columns.begin() + 1,
                         {{"GFLOPs", "gflops"}, {"Saved", "saved_bytes"}});
  }
  for (const SummaryLayer& layer : found.layers) {
    Row row{{layer.parameters, shape_text(layer, found.batch), layer.op, layer.name}};
    if (found.has_costs) {
      row.cells.insert(row.cells.begin() + 1, {giga(layer.flops), Cell(layer.saved)});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// The listing with a last row of sums.
Table summed(const ModelSummary& found, Table table) {
  Row sum{{found.parameters, std::string(), std::string(), std::string("all")}, true};
  if (found.has_costs) {
    sum.cells.insert(sum.cells.begin() + 1, {giga(found.flops), Cell(found.saved)});
  }
  table.rows.push_back(std::move(sum));
  return table;
}

Table totals_table(const ModelSummary& found) {
  Table totals{.columns = {{"", "count"}, {"", "bytes"}, {"", "name"}}};
  totals.rows.push_back({{found.parameters, found.parameter_bytes, std::string("parameters")}});
  totals.rows.push_back(
      {{found.trainable_parameters, std::monostate{}, std::string("of them trainable")}});
  totals.rows.push_back({{std::monostate{}, found.buffer_bytes, std::string("buffers")}});
  return totals;
}

Json::Object json_of(const ModelSummary& found) {
  Json::Array rows;
  for (const SummaryLayer& layer : found.layers) {
    Json::Array shape;
    for (const std::int64_t extent : layer.output_at_batch) shape.emplace_back(extent);
    rows.emplace_back(Json::Object{{"name", layer.name},
                                   {"op", layer.op},
                                   {"output_shape", std::move(shape)},
                                   {"parameters", layer.parameters},
                                   {"flops", layer.flops},
                                   {"saved_bytes", layer.saved.count()}});
  }
  const std::int64_t batch = found.batch.value_or(1);
  return {
      {"model", Json::Object{{"name", found.name},
                             {"source", found.source},
                             {"parameters", found.parameters},
                             {"trainable_parameters", found.trainable_parameters},
                             {"parameter_bytes", found.parameter_bytes},
                             {"buffer_bytes", found.buffer_bytes}}},
      {"batch", batch},
      {"layers", std::move(rows)},
      {"memory", found.memory ? memory_json(*found.memory, batch, found.missing_update) : Json()}};
}

}  // namespace

RenderedAnswer rendered(const ModelSummary& found) {
  RenderedAnswer answer;
  Report& out = answer.report;
  out.notes = found.notes;
  out.listing = listing_of(found);
  out.json = json_of(found);
  out.say(found.source.empty() ? found.name : fmt::format("{} ({})", found.name, found.source),
          Tone::heading);
  out.show(summed(found, out.listing));
  out.say("");
  out.show(totals_table(found));
  if (found.memory) {
    say_memory(*found.memory, *found.batch, found.missing_update, out);
    out.say("  Tensors alone: stowage check adds workspaces, the allocator and the CUDA context");
  }
  return answer;
}

}  // namespace stowage
