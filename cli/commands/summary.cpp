#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands/commands.hpp"
#include "cli/options/arguments.hpp"
#include "cli/report/step_file.hpp"
#include "cli/report/step_memory_report.hpp"
#include "cli/report/weights_summary.hpp"
#include "cli/requested/requested_step.hpp"
#include "estimator/document/make_document.hpp"
#include "estimator/recorded/complete_step.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "estimator/step/choose_step.hpp"

namespace stowage {

namespace {

// The step as the description has it, in eager PyTorch's kernels.
Result<std::shared_ptr<const StepGraph>> described_step(const ModelGraph& model,
                                                        std::optional<TensorLayout> layout) {
  const auto chosen = choose_step(model, {.layout = layout});
  if (!chosen) return tl::unexpected(chosen.error());
  auto step = lower_step(model, chosen->lowering);
  if (!step) return tl::unexpected(step.error());
  return std::make_shared<const StepGraph>(*std::move(step));
}

std::string shape_text(const Shape& shape, std::optional<std::int64_t> batch) {
  return batch ? fmt::format("[{}]", fmt::join(at_batch(shape, *batch), ", ")) : to_string(shape);
}

/// Of all parameters, or of all buffers.
Bytes parameter_bytes(const StepDocument& document, bool buffers) {
  Bytes sum;
  for (const Parameter& parameter : document.parameters) {
    if (parameter.is_buffer != buffers) continue;
    sum += Bytes(element_count(parameter.type.shape).constant) * element_size(parameter.type.type);
  }
  return sum;
}

std::int64_t parameter_count(const StepDocument& document, bool trainable_only) {
  std::int64_t count = 0;
  for (const Parameter& parameter : document.parameters) {
    if (parameter.is_buffer || (trainable_only && !parameter.trainable)) continue;
    count += parameter.values > 0 ? parameter.values : element_count(parameter.type.shape).constant;
  }
  return count;
}

// FLOPs leave 64 bits long before bytes do.
Number giga(const Affine& flops, std::int64_t batch) { return {flops.real_at(batch) / 1e9, 3}; }

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

Json::Object json_of(const StepDocument& document, const std::string& name, std::int64_t batch) {
  Json::Array rows;
  for (const Layer& layer : document.layers) {
    Json::Array shape;
    for (const std::int64_t extent : at_batch(layer.output, batch)) shape.emplace_back(extent);
    rows.emplace_back(Json::Object{{"name", layer.name},
                                   {"op", layer.op},
                                   {"output_shape", std::move(shape)},
                                   {"parameters", layer.parameters},
                                   {"flops", layer.flops.real_at(batch)},
                                   {"saved_bytes", layer.saved_bytes.at(batch)}});
  }
  return {{"model", Json::Object{{"name", name},
                                 {"source", document.source},
                                 {"parameters", parameter_count(document, false)},
                                 {"trainable_parameters", parameter_count(document, true)},
                                 {"parameter_bytes", parameter_bytes(document, false)},
                                 {"buffer_bytes", parameter_bytes(document, true)}}},
          {"batch", batch},
          {"layers", std::move(rows)}};
}

Answer answer_of(const StepDocument& document, const std::string& name,
                 std::optional<std::int64_t> batch, bool costs) {
  const std::vector<Layer>& layers = document.layers;
  Answer answer;
  Report& report = answer.report;
  report.notes = document.warnings;
  report.listing = listing(layers, batch, costs);
  report.json = json_of(document, name, batch.value_or(1));

  const std::int64_t all = parameter_count(document, false);
  const std::int64_t trainable = parameter_count(document, true);
  report.say(document.source.empty() ? name : fmt::format("{} ({})", name, document.source),
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
  totals.rows.push_back({{all, parameter_bytes(document, false), std::string("parameters")}});
  totals.rows.push_back({{trainable, std::monostate{}, std::string("of them trainable")}});
  totals.rows.push_back(
      {{std::monostate{}, parameter_bytes(document, true), std::string("buffers")}});
  report.show(std::move(totals));
  return answer;
}

/// What a step file has of its model; its graph is not looked at.
Result<StepDocument> read_document(SourceTextPtr source, const SummaryRequest& request) {
  auto document = read_completed_step(std::move(source));
  if (!document) return document;
  Diagnostics found = contradictions(*document, request.model.options);
  const TensorLayout layout = document->graph->settings.step.layout;
  if (request.layout && *request.layout != layout) {
    found.push_back(command_line_error(fmt::format("--layout {}: the step was made for {}",
                                                   to_string(*request.layout), to_string(layout))));
  }
  if (request.costs && !document->has_costs) {
    found.push_back(command_line_error(
        "the step file does not say what its layers compute and keep", "leave out --verbose"));
  }
  if (request.batch) {
    if (auto served = check_batch(*document, *request.batch, "--batch"); !served) {
      found.push_back(served.error().front());
    }
  }
  if (!found.empty()) return tl::unexpected(std::move(found));
  return document;
}

/// The same of a model, which has no step.
Result<StepDocument> described(const ModelGraph& model, const SummaryRequest& request) {
  StepDocument document;
  document.source = model.source;
  document.parameters = model.parameters;
  document.layers = layers_of(model);
  document.warnings = model.warnings;
  if (request.costs) {
    const TensorLayout layout = request.layout.value_or(model.step.layout);
    const auto added = add_costs(model, layout, document.layers);
    if (!added) return tl::unexpected(added.error());
  }
  if (request.batch) {
    auto step = described_step(model, request.layout);
    if (!step) return tl::unexpected(std::move(step.error()));
    document.graph = *std::move(step);
  }
  return document;
}

// What the step's tensors take, where a batch is given.
Result<void> add_memory(const StepDocument& document, const SummaryRequest& request, Report& out) {
  if (!request.batch) {
    out.json.emplace_back("memory", Json());
    return {};
  }
  const auto footprint = tensor_footprint(document.graph, *request.batch);
  if (!footprint) return tl::unexpected(footprint.error());
  out.json.emplace_back("memory", memory_json(*footprint, *request.batch));
  say_memory(*footprint, *request.batch, out);
  out.say("  Tensors alone: stowage check adds workspaces, the allocator and the CUDA context");
  return {};
}

}  // namespace

Result<Answer> run_summary(const SummaryRequest& request) {
  if (auto weights = weights_summary(request)) return *std::move(weights);
  auto found = found_model(request.model);
  if (!found) return tl::unexpected(std::move(found.error()));
  Result<StepDocument> document;
  std::string name;
  if (is_step_file(found->source->text)) {
    document = read_document(std::move(found->source), request);
    if (document) name = document->graph->model;
  } else {
    const auto model = loaded_model(*std::move(found), request.model);
    if (!model) return tl::unexpected(model.error());
    name = model->graph.name;
    document = described(model->graph, request);
  }
  if (!document) return tl::unexpected(std::move(document.error()));
  try {
    Answer answer = answer_of(*document, name, request.batch, request.costs);
    if (auto added = add_memory(*document, request, answer.report); !added) {
      return tl::unexpected(std::move(added.error()));
    }
    return answer;
  } catch (const ArithmeticOverflow&) {
    return failure(command_line_error(fmt::format(
        "--batch {}: what this model keeps leaves 64 bits", request.batch.value_or(1))));
  }
}

}  // namespace stowage
