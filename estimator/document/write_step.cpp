#include <fmt/format.h>

#include "estimator/base/printable.hpp"
#include "estimator/document/fields.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/document/words.hpp"
#include "estimator/document/write_graph.hpp"
#include "estimator/document/write_settings.hpp"

namespace stowage {

namespace {

using step_text::graph_text;
using step_text::json_text;
using step_text::put;
using step_text::put_list;
using step_text::put_settings;
using step_text::Tables;
using step_text::Text;
using step_text::written;

/// A text that a description or a file's name may hold, as the reader takes it: on one line, with
/// escapes for control characters, and not over its longest text.
std::string quoted_line(std::string_view text) {
  std::string line = printable_line(text);
  if (line.size() > longest_recorded_name) {
    std::size_t end = longest_recorded_name;
    while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0U) == 0x80U) --end;
    line.resize(end);
  }
  return json_text(line);
}

void put_origins(Text& text, const StepGraph& graph, bool with_places) {
  put(text, ",\n\"origins\": ");
  put_list(text, graph.origins.size(), [&](std::size_t i) {
    const Origin& origin = graph.origins[i];
    put(text, "\n[{}", json_text(origin.layer));
    if (with_places && !origin.place.empty()) put(text, ",{}", json_text(origin.place));
    put(text, "]");
  });
}

ParameterKind kind_of(const Parameter& parameter) {
  if (parameter.is_buffer) return ParameterKind::buffer;
  return parameter.trainable ? ParameterKind::trained : ParameterKind::frozen;
}

void put_parameters(Text& text, const std::vector<Parameter>& parameters, Tables& tables) {
  put(text, ",\n\"parameters\": ");
  put_list(text, parameters.size(), [&](std::size_t i) {
    const Parameter& parameter = parameters[i];
    put(text, "\n[{},{},{},{}]", json_text(parameter.name),
        json_text(to_string(parameter.type.type)), tables.shape(parameter.type.shape),
        json_text(to_string(kind_of(parameter))));
  });
}

// Left out where all are updated, as in whatever this program lowers.
void put_not_updated(Text& text, const std::vector<ParameterId>& ids) {
  if (ids.empty()) return;
  put(text, ",\n\"not_updated\": ");
  put_list(text, ids.size(), [&](std::size_t i) { put(text, "{}", ids[i].value); });
}

void put_layers(Text& text, const StepDocument& document, Tables& tables) {
  put(text, ",\n\"layers\": ");
  put_list(text, document.layers.size(), [&](std::size_t i) {
    const Layer& layer = document.layers[i];
    put(text, "\n[{},{},{},{}", json_text(layer.name), json_text(layer.op),
        tables.shape(layer.output), layer.parameters);
    if (document.has_costs) put(text, ",{},{}", written(layer.flops), written(layer.saved_bytes));
    put(text, "]");
  });
}

// Left out where there are none, as in whatever this program lowers.
void put_modules(Text& text, const std::vector<RecordedModule>& modules, Tables& tables) {
  if (modules.empty()) return;
  put(text, ",\n\"modules\": ");
  put_list(text, modules.size(), [&](std::size_t i) {
    const RecordedModule& module = modules[i];
    put(text, "\n[{},{},", json_text(module.path),
        json_text(module.is_sequence ? "sequence" : "module"));
    put_list(text, module.inputs.size(), [&](std::size_t n) {
      const RecordedModule::Input& input = module.inputs[n];
      put(text, "[{},{},{},{}]", input.number, input.view.storage.value, tables.layout(input.view),
          input.held_until.value);
    });
    put(text, "]");
  });
}

void put_warnings(Text& text, const Diagnostics& warnings) {
  put(text, ",\n\"warnings\": ");
  put_list(text, warnings.size(), [&](std::size_t i) {
    const Diagnostic& warning = warnings[i];
    put(text, "\n{{\"message\": {}", quoted_line(warning.message));
    if (!warning.hint.empty()) put(text, ", \"hint\": {}", quoted_line(warning.hint));
    if (warning.span.source) {
      put(text, ", \"file\": {}, \"line\": {}, \"column\": {}",
          quoted_line(warning.span.source->name), warning.span.line, warning.span.column);
    }
    put(text, "}}");
  });
}

}  // namespace

std::string write_step(const StepDocument& document) {
  const StepGraph& graph = *document.graph;
  Tables tables;
  const std::string step = graph_text(graph, tables);
  const std::string evaluation =
      document.evaluation ? graph_text(*document.evaluation, tables) : std::string();
  Text text;
  put(text, "{{\n\"format\": {},\n\"version\": {},\n\"written_by\": {}", json_text(step_format),
      step_version, json_text(document.written_by));
  put(text,
      ",\n\"model\": {},\n\"source\": {},\n\"runtime\": {},\n\"precision\": {},\n\"seq\": {},\n"
      "\"accumulation\": {},\n\"batch\": {},\n\"fixed_batch\": {}",
      quoted_line(graph.model), quoted_line(document.source),
      json_text(to_string(document.runtime)), json_text(to_string(document.precision)),
      document.seq > 0 ? fmt::format("{}", document.seq) : "null", document.accumulation,
      document.batch ? fmt::format("{}", *document.batch) : "null", document.fixed_batch);
  put_settings(text, graph.settings);
  put_origins(text, graph, true);
  put_parameters(text, document.parameters, tables);
  put_not_updated(text, document.not_updated);
  put_layers(text, document, tables);
  put_modules(text, document.modules, tables);
  put(text, ",\n\"result_bytes\": {}",
      document.result_bytes ? written(*document.result_bytes) : "null");
  put_warnings(text, document.warnings);
  tables.put_to(text);
  put(text, ",\n\"step\": {}", step);
  if (document.evaluation) put(text, ",\n\"evaluation\": {}", evaluation);
  put(text, "}}\n");
  return fmt::to_string(text);
}

std::string canonical_text(const StepGraph& graph) {
  Tables tables;
  const std::string step = graph_text(graph, tables);
  Text text;
  put(text, "{{\"model\": {}", quoted_line(graph.model));
  put_settings(text, graph.settings);
  put_origins(text, graph, false);
  tables.put_to(text);
  put(text, ",\n\"step\": {}}}\n", step);
  return fmt::to_string(text);
}

}  // namespace stowage
