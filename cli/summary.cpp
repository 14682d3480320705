#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/requested_step.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/step/lower.hpp"

namespace stowage {

namespace {

struct Layer {
  std::string name;
  std::string_view op;
  Shape output;
  std::int64_t parameters = 0;
  Affine flops = 0;        ///< of its forward pass
  Affine saved_bytes = 0;  ///< that it is the first to keep for the backward pass
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

bool is_kept(StorageClass storage_class) {
  return storage_class == StorageClass::activation ||
         storage_class == StorageClass::saved_auxiliary;
}

// What eager PyTorch's forward pass computes and keeps, layer by layer; without a loss nothing is
// kept.
Result<bool> add_costs(const ModelGraph& model, TensorLayout layout, std::vector<Layer>& layers) {
  const bool trains = model.loss.valid();
  const auto step = lower(model, {.kernels = KernelSet::pytorch,
                                  .mode = trains ? Mode::train : Mode::inference,
                                  .step = {.layout = layout}});
  if (!step) return tl::unexpected(step.error());
  for (const KernelNode& node : step->nodes) {
    if (!node.op.valid() || node.phase == Phase::backward) continue;
    Affine& flops = layers[node.op.index()].flops;
    flops = flops + node.flops;
  }
  std::set<StorageId> counted;
  for (const SavedTensor& saved : step->saved) {
    const Storage& storage = step->storage(saved.storage);
    if (!is_kept(storage.storage_class) || !counted.insert(saved.storage).second) continue;
    Affine& bytes = layers[saved.op.index()].saved_bytes;
    bytes = bytes + storage.bytes;
  }
  return true;
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

// FLOPs leave 64 bits long before bytes do.
double value_of(const Affine& count, std::int64_t batch) {
  return static_cast<double>(count.constant) +
         static_cast<double>(count.slope) * static_cast<double>(batch);
}
Number giga(const Affine& flops, std::int64_t batch) { return {value_of(flops, batch) / 1e9, 3}; }

Table listing(const std::vector<Layer>& layers, std::optional<std::int64_t> batch, bool costs) {
  Table table{.columns = {{"Parameters", "parameters"},
                          {"Output shape", "output_shape"},
                          {"Operator", "op"},
                          {"Layer", "name"}}};
  if (costs) {
    table.columns.insert(table.columns.begin() + 1,
                         {{"GFLOPs", "gflops"}, {"Saved", "saved_bytes"}});
  }
  for (const Layer& layer : layers) {
    Row row{{layer.parameters, shape_text(layer.output, batch), std::string(layer.op), layer.name}};
    if (costs) {
      const std::int64_t at = batch.value_or(1);
      row.cells.insert(row.cells.begin() + 1,
                       {Cell(giga(layer.flops, at)), Cell(Bytes(layer.saved_bytes.at(at)))});
    }
    table.rows.push_back(std::move(row));
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
                                   {"parameters", layer.parameters},
                                   {"flops", value_of(layer.flops, batch)},
                                   {"saved_bytes", layer.saved_bytes.at(batch)}});
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

Answer answer_of(const ModelGraph& model, const std::vector<Layer>& layers,
                 std::optional<std::int64_t> batch, bool costs) {
  Answer answer;
  Report& report = answer.report;
  report.notes = model.warnings;
  report.listing = listing(layers, batch, costs);
  report.json = json_of(model, layers, batch.value_or(1));

  const std::int64_t all = parameter_count(model);
  const std::int64_t trainable = trainable_parameter_count(model);
  report.say(model.source.empty() ? model.name : fmt::format("{} ({})", model.name, model.source),
             Tone::heading);
  Table table = report.listing;
  Row sum{{all, std::string(), std::string(), std::string("all")}, true};
  if (costs) {
    Affine flops = 0, saved = 0;
    for (const Layer& layer : layers) {
      flops = flops + layer.flops;
      saved = saved + layer.saved_bytes;
    }
    const std::int64_t at = batch.value_or(1);
    sum.cells.insert(sum.cells.begin() + 1, {Cell(giga(flops, at)), Cell(Bytes(saved.at(at)))});
  }
  table.rows.push_back(std::move(sum));
  report.show(std::move(table));
  report.say("");
  Table totals{.columns = {{"", "count"}, {"", "bytes"}, {"", "name"}}};
  totals.rows.push_back({{all, parameter_bytes(model, false), std::string("parameters")}});
  totals.rows.push_back({{trainable, std::monostate{}, std::string("of them trainable")}});
  totals.rows.push_back({{std::monostate{}, parameter_bytes(model, true), std::string("buffers")}});
  report.show(std::move(totals));
  return answer;
}

}  // namespace

Result<Answer> run_summary(const SummaryRequest& request) {
  const auto requested = requested_model(request.model);
  if (!requested) return tl::unexpected(requested.error());
  const ModelGraph& model = requested->graph;

  std::vector<Layer> layers = layers_of(model);
  if (request.costs) {
    const TensorLayout layout = request.layout.value_or(model.step.layout);
    const auto added = add_costs(model, layout, layers);
    if (!added) return tl::unexpected(added.error());
  }
  try {
    return answer_of(model, layers, request.batch, request.costs);
  } catch (const ArithmeticOverflow&) {
    return failure(command_line_error(
        fmt::format("--batch {}: what this model keeps leaves 64 bits", *request.batch)));
  }
}

}  // namespace stowage
