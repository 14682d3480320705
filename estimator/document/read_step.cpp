#include <algorithm>
#include <array>
#include <cmath>

#include "estimator/base/batch.hpp"
#include "estimator/document/check_step_graph.hpp"
#include "estimator/document/read_graph.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/document/words.hpp"
#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

namespace {

using Kind = JsonValue::Kind;

constexpr std::int64_t most_parameter_elements = std::int64_t{1} << 57;  // of all parameters
constexpr std::int64_t most_micro_batches = 1'000'000;

void check_format(Members& members) {
  const JsonValue format = members.required("format");
  if (!format.is(Kind::text) || format.text() != step_format) {
    refuse(format, fmt::format("'format' must be \"{}\"", step_format));
  }
  const JsonValue version = members.required("version");
  if (!version.is(Kind::integer) || version.integer() != step_version) {
    refuse(version,
           fmt::format("this program reads version {} of step files, not {}", step_version,
                       version.describe()),
           "stowage lower writes one from its description");
  }
}

OptimizerSettings optimizer_of(const JsonValue& value) {
  Members members(value, "'optimizer'");
  const JsonValue name = members.required("name");
  OptimizerSettings settings;
  settings.name = text_of(name, "the optimizer's name");
  if (find_optimizer(settings.name) == nullptr) {
    std::vector<std::string_view> names;
    for (const OptimizerRow& row : optimizer_table()) names.push_back(row.name);
    refuse_word(name, "the optimizer's name", names);
  }
  for (const OptimizerSetting& setting : setting_table()) {
    const JsonValue given = members.required(setting.spec.name);
    if (std::holds_alternative<bool OptimizerSettings::*>(setting.member)) {
      set_value(settings, setting, boolean_of(given, setting.spec.name));
    } else {
      set_value(settings, setting, real_of(given, setting.spec.name));
    }
  }
  settings.implementation = choice_of(members.required("implementation"),
                                      "the optimizer's implementation", optimizer_implementations);
  settings.master_weights =
      choice_of(members.required("master_weights"), "'master_weights'", master_weight_kinds);
  members.finish();
  if (const auto problem = problem_of(settings)) refuse(value, problem->message, problem->hint);
  return settings;
}

// Sorted and without duplicates, so that lists of the same values are equal.
std::vector<RecomputedValue> recomputed_values_of(const JsonValue& list) {
  expect(list, Kind::array, "'recomputed'");
  std::vector<RecomputedValue> values;
  for (auto at = list.begin(); !(at == list.end()); ++at) {
    FieldRow row(*at, "a recomputed value");
    RecomputedValue value{.value = name_of(row.next("name"), "a recomputed value's name")};
    if (const auto before = row.next_if_any()) value.before = name_of(*before, "a node's name");
    row.finish();
    if (!values.empty() && values.back() >= value) {
      refuse(*at, "recomputed values are in ascending order, each once");
    }
    values.push_back(std::move(value));
  }
  return values;
}

std::vector<NodeRun> order_of(const JsonValue& list) {
  expect(list, Kind::array, "'order'");
  std::vector<NodeRun> runs;
  for (auto at = list.begin(); !(at == list.end()); ++at) {
    FieldRow row(*at, "a run of nodes");
    NodeRun run{.first = name_of(row.next("first node"), "a node's name")};
    const auto last = row.next_if_any();
    run.last = last ? name_of(*last, "a node's name") : run.first;
    row.finish();
    runs.push_back(std::move(run));
  }
  return runs;
}

std::optional<DataType> float_type_of(Members& members, std::string_view key) {
  const auto given = members.find(key);
  if (!given) return std::nullopt;
  const DataType type = choice_of(*given, fmt::format("'{}'", key), all_data_types);
  if (!is_floating_point(type)) refuse(*given, fmt::format("'{}' is a floating-point type", key));
  return type;
}

FullyShard fully_shard_of(const JsonValue& value) {
  Members members(value, "'fsdp'");
  constexpr std::array<std::string_view, 2> wraps{"blocks", "root"};
  FullyShard fsdp{.on = true};
  const JsonValue wrap = members.required("wrap");
  const std::string word = text_of(wrap, "'wrap'");
  if (std::ranges::find(wraps, word) == wraps.end()) refuse_word(wrap, "'wrap'", wraps);
  fsdp.by_block = word == wraps.front();
  fsdp.reshards_after_forward =
      boolean_of(members.required("reshard_after_forward"), "'reshard_after_forward'");
  const auto number = [&](std::string_view key, std::int64_t most) {
    return static_cast<int>(integer_of(members.required(key), fmt::format("'{}'", key), 0, most));
  };
  fsdp.reshards_among = number("reshard_among", most_gpus);
  fsdp.forward_prefetch = number("forward_prefetch", most_prefetched_blocks);
  fsdp.backward_prefetch = number("backward_prefetch", most_prefetched_blocks);
  fsdp.reduce_type = float_type_of(members, "reduce_dtype");
  fsdp.output_type = float_type_of(members, "output_dtype");
  members.finish();
  return fsdp;
}

void read_sharding(Members& members, DataParallel& parallel) {
  if (const auto fsdp = members.find("fsdp")) {
    parallel.fsdp = fully_shard_of(*fsdp);
    if (parallel.zero > 0) refuse(*fsdp, "a model is sharded by ZeRO or by FSDP, not by both");
  }
  if (const auto offload = members.find("offload")) {
    constexpr std::array kinds{Offload::none, Offload::optimizer, Offload::parameters,
                               Offload::all};
    parallel.offload = choice_of(*offload, "'offload'", kinds);
  }
  if (const auto pinned = members.find("pinned")) {
    parallel.pinned = boolean_of(*pinned, "'pinned'");
  }
}

/// Reads the member `settings`. Members that older files lack are optional.
LoweringSettings settings_of(const JsonValue& value) {
  Members members(value, "'settings'");
  constexpr int most_copies = 1000;  // of inputs: augmented, prefetched
  const auto number = [&](std::string_view key, std::int64_t least, std::int64_t most) {
    return static_cast<int>(
        integer_of(members.required(key), fmt::format("'{}'", key), least, most));
  };
  const auto flag = [&](std::string_view key) {
    return boolean_of(members.required(key), fmt::format("'{}'", key));
  };
  LoweringSettings settings;
  settings.kernels = choice_of(members.required("kernels"), "'kernels'", all_kernel_sets);
  settings.mode = choice_of(members.required("mode"), "'mode'", modes);
  settings.optimizer = optimizer_of(members.required("optimizer"));
  settings.micro_batches = number("micro_batches", 1, most_micro_batches);
  if (const auto early = members.find("early_updates")) {
    settings.early_updates = boolean_of(*early, "'early_updates'");
    if (settings.early_updates && settings.mode != Mode::train) {
      refuse(*early, "an inference has no updates");
    }
  }
  if (const auto in_place = members.find("in_place")) {
    settings.in_place = boolean_of(*in_place, "'in_place'");
    if (settings.in_place && !traits(settings.kernels).executable) {
      refuse(*in_place, fmt::format("the kernels of {} make room for every result",
                                    to_string(settings.kernels)));
    }
  }
  settings.step.zero_grad = choice_of(members.required("zero_grad"), "'zero_grad'", zero_grads);
  settings.step.augment = number("augment", 0, most_copies);
  settings.step.prefetch = number("prefetch", 0, most_copies);
  settings.step.layout = choice_of(members.required("layout"), "'layout'", tensor_layouts);
  const JsonValue capability = members.required("compute_capability");
  settings.compute_capability = real_of(capability, "'compute_capability'");
  constexpr double most_capability = 1000;
  if (!(settings.compute_capability >= 0 && settings.compute_capability < most_capability)) {
    refuse(capability, "'compute_capability' is not one: 8.6 is");
  }
  if (const auto takes = members.find("efficient_takes_groups")) {
    settings.efficient_takes_groups = boolean_of(*takes, "'efficient_takes_groups'");
  }
  settings.convolutions = {.tf32 = flag("tf32"),
                           .deterministic = flag("deterministic"),
                           .benchmark = flag("cudnn_benchmark")};
  settings.parallel = {.gpus = number("gpus", 1, most_gpus),
                       .zero = number("zero", 0, last_zero_stage)};
  read_sharding(members, settings.parallel);
  if (const auto recomputed = members.find("recomputed")) {
    settings.recomputed = recomputed_values_of(*recomputed);
  }
  if (const auto order = members.find("order")) settings.order = order_of(*order);
  members.finish();
  return settings;
}

// The evaluation has the settings of the training step, except for its mode and micro-batches.
LoweringSettings of_evaluation(LoweringSettings settings) {
  settings.mode = Mode::inference;
  settings.micro_batches = 1;
  settings.early_updates = false;
  settings.recomputed.clear();
  settings.order.clear();
  return settings;
}

std::vector<Parameter> parameters_of(const JsonValue& list, const std::vector<Shape>& shapes) {
  expect(list, Kind::array, "'parameters'");
  std::vector<Parameter> parameters;
  std::int64_t elements = 0;
  for (auto at = list.begin(); !(at == list.end()); ++at) {
    FieldRow row(*at, "a parameter");
    Parameter parameter;
    parameter.name = name_of(row.next("name"), "a parameter's name");
    parameter.type.type = choice_of(row.next("type"), "a parameter's type", all_data_types);
    const JsonValue shape = row.next("shape");
    parameter.type.shape = tensor_shape(shape, shapes);
    if (!std::ranges::all_of(parameter.type.shape, &Affine::is_constant)) {
      refuse(shape, "a parameter's shape does not depend on the batch");
    }
    elements += element_count(parameter.type.shape).constant;
    if (elements < 0 || elements > most_parameter_elements) refuse(shape, "too many elements");
    const ParameterKind kind = choice_of(row.next("kind"), "a parameter's kind", parameter_kinds);
    parameter.trainable = kind == ParameterKind::trained;
    parameter.is_buffer = kind == ParameterKind::buffer;
    row.finish();
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

/// Reads the member `not_updated`: ids of trained parameters, ascending.
std::vector<ParameterId> not_updated_of(const JsonValue& list, const StepDocument& document,
                                        const LoweringSettings& settings) {
  expect(list, Kind::array, "'not_updated'");
  if (settings.mode != Mode::train || !traits(settings.kernels).library_optimizer) {
    refuse(list, "'not_updated' is of a training step of PyTorch's kernels");
  }
  std::vector<ParameterId> ids;
  for (auto at = list.begin(); !(at == list.end()); ++at) {
    const auto id =
        ParameterId::of(index_of(*at, "a parameter's number", document.parameters.size()));
    if (!ids.empty() && ids.back() >= id) {
      refuse(*at, "parameters that are not updated are in ascending order, each once");
    }
    const Parameter& parameter = document.parameters[id.index()];
    if (!parameter.trainable || parameter.is_buffer) {
      refuse(*at,
             fmt::format("'{}' is not trained, so that nothing has to update it", parameter.name));
    }
    ids.push_back(id);
  }
  return ids;
}

void read_layers(const JsonValue& list, const std::vector<Shape>& shapes, StepDocument& document) {
  expect(list, Kind::array, "'layers'");
  document.has_costs = list.size() > 0;
  for (auto at = list.begin(); !(at == list.end()); ++at) {
    FieldRow row(*at, "a layer");
    Layer layer;
    layer.name = text_of(row.next("name"), "a layer's name");
    layer.op = text_of(row.next("operator"), "a layer's operator");
    layer.output = shapes[index_of(row.next("shape"), "a shape's number", shapes.size())];
    layer.parameters = integer_of(row.next("parameters"), "a layer's parameters");
    if (const auto flops = row.next_if_any()) {
      layer.flops = affine_of(*flops, "a layer's FLOPs");
      layer.saved_bytes = affine_of(row.next("saved bytes"), "a layer's saved bytes");
    } else {
      document.has_costs = false;
    }
    row.finish();
    document.layers.push_back(std::move(layer));
  }
}

/// Reads a row of the member `modules`: [path, kind, [number, storage, layout, held_until] of each
/// input].
RecordedModule module_of(const JsonValue& value, const StepTables& tables,
                         const StepDocument& document) {
  const StepGraph& graph = *document.graph;
  FieldRow row(value, "a module");
  RecordedModule module{.path = name_of(row.next("path"), "a module's path")};
  const JsonValue kind = row.next("kind");
  constexpr std::array<std::string_view, 2> kinds{"module", "sequence"};
  const std::string word = text_of(kind, "a module's kind");
  if (std::ranges::find(kinds, word) == kinds.end()) refuse_word(kind, "a module's kind", kinds);
  module.is_sequence = word == kinds.back();
  const JsonValue inputs = row.next("inputs");
  expect(inputs, Kind::array, "a module's inputs");
  for (auto at = inputs.begin(); !(at == inputs.end()); ++at) {
    FieldRow fields(*at, "a module's input");
    RecordedModule::Input input{.number = integer_of(fields.next("number"), "an input's number")};
    const auto storage = StorageId::of(
        index_of(fields.next("storage"), "a storage's number", graph.storages.size()));
    input.view =
        tables.layouts[index_of(fields.next("layout"), "a layout's number", tables.layouts.size())];
    input.view.storage = storage;
    const JsonValue held = fields.next("held_until");
    const auto last = static_cast<std::int64_t>(graph.nodes.size()) - 1;
    input.held_until =
        NodeId{static_cast<std::int32_t>(integer_of(held, "an input's last node", -1, last))};
    fields.finish();
    const auto batch = document.fixed_batch ? document.batch : std::nullopt;
    if (auto problem = view_problem(graph, input.view, "a module's input", batch)) {
      refuse(*at, problem->message);
    }
    module.inputs.push_back(std::move(input));
  }
  row.finish();
  return module;
}

void read_modules(const JsonValue& list, const StepTables& tables, StepDocument& document) {
  expect(list, Kind::array, "'modules'");
  for (auto at = list.begin(); !(at == list.end()); ++at) {
    document.modules.push_back(module_of(*at, tables, document));
  }
}

Diagnostics warnings_of(const JsonValue& list) {
  expect(list, Kind::array, "'warnings'");
  Diagnostics warnings;
  constexpr std::int64_t last_line = std::int64_t{1} << 30;
  for (auto at = list.begin(); !(at == list.end()); ++at) {
    Members members(*at, "a warning");
    Diagnostic warning{.severity = Severity::warning,
                       .message = text_of(members.required("message"), "a warning's message")};
    if (const auto hint = members.find("hint")) warning.hint = text_of(*hint, "a warning's hint");
    if (const auto file = members.find("file")) {
      warning.span.source = std::make_shared<const SourceText>(
          SourceText{.name = text_of(*file, "a warning's file"), .text = {}});
      warning.span.line =
          static_cast<int>(integer_of(members.required("line"), "a warning's line", 0, last_line));
      warning.span.column = static_cast<int>(
          integer_of(members.required("column"), "a warning's column", 0, last_line));
    }
    members.finish();
    warnings.push_back(std::move(warning));
  }
  return warnings;
}

/// Reads the members of a step file: what the step is and its settings, the tables, parameters and
/// layers, then the graphs, which refer to the tables, with their checks.
StepDocument document_of(const JsonValue& root) {
  Members members(root, "a step file");
  check_format(members);
  StepDocument document;
  document.written_by = text_of(members.required("written_by"), "'written_by'");
  const std::string model = name_of(members.required("model"), "'model'");
  document.source = text_of(members.required("source"), "'source'");
  document.runtime = choice_of(members.required("runtime"), "'runtime'", runtimes);
  document.precision = [&] {
    const JsonValue value = members.required("precision");
    const std::string word = text_of(value, "'precision'");
    if (const auto known = parse_precision(word)) return *known;
    refuse_word(value, "'precision'", precision_names());
  }();
  if (const auto seq = members.find("seq")) document.seq = integer_of(*seq, "'seq'", 1);
  document.accumulation = integer_of(members.required("accumulation"), "'accumulation'", 1);
  if (const auto batch = members.find("batch"))
    document.batch = integer_of(*batch, "'batch'", 1, largest_batch);
  const JsonValue fixed = members.required("fixed_batch");
  document.fixed_batch = boolean_of(fixed, "'fixed_batch'");
  if (document.fixed_batch && !document.batch) refuse(fixed, "a step of a fixed batch says which");
  const JsonValue settings_value = members.required("settings");
  const LoweringSettings settings = settings_of(settings_value);
  if (kernel_set_of(document.runtime) != settings.kernels) {
    refuse(settings_value, fmt::format("the runtime {} does not run the kernels of {}",
                                       to_string(document.runtime), to_string(settings.kernels)));
  }
  if (settings.in_place && !works_in_place(document.runtime)) {
    refuse(settings_value, fmt::format("the runtime {} makes room for every result: it has no "
                                       "steps with 'in_place'",
                                       to_string(document.runtime)));
  }
  StepTables tables;
  tables.origins = read_origins(members.required("origins"));
  tables.shapes = read_shapes(members.required("shapes"));
  tables.layouts = read_layouts(members.required("layouts"), tables.shapes);
  tables.attributes = read_attributes(members.required("attributes"), tables.shapes);
  tables.convolutions = read_convolutions(members.required("convolutions"), tables.shapes);
  document.parameters = parameters_of(members.required("parameters"), tables.shapes);
  tables.parameters = document.parameters.size();
  if (const auto ids = members.find("not_updated")) {
    document.not_updated = not_updated_of(*ids, document, settings);
  }
  read_layers(members.required("layers"), tables.shapes, document);
  if (const auto bytes = members.find("result_bytes")) {
    document.result_bytes = affine_of(*bytes, "'result_bytes'");
  }
  document.warnings = warnings_of(members.required("warnings"));

  const auto graph_of = [&](const JsonValue& value, std::string_view what,
                            const LoweringSettings& of) {
    StepGraph graph = read_graph(value, what, tables, of);
    graph.model = model;
    if (auto problem = step_graph_problem(graph, document.parameters,
                                          document.fixed_batch ? document.batch : std::nullopt)) {
      refuse(value, fmt::format("{}: {}", what, problem->message), problem->hint);
    }
    return std::make_shared<const StepGraph>(std::move(graph));
  };
  document.graph = graph_of(members.required("step"), "the step", settings);
  if (const auto evaluation = members.find("evaluation")) {
    document.evaluation = graph_of(*evaluation, "the evaluation", of_evaluation(settings));
  }
  if (const auto modules = members.find("modules")) read_modules(*modules, tables, document);
  members.finish();
  return document;
}

}  // namespace

bool is_step_file(std::string_view text) {
  constexpr std::size_t looked_at = 4096;
  text = text.substr(0, looked_at);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return false;
  return text.find(fmt::format("\"{}\"", step_format)) != std::string_view::npos;
}

Result<StepDocument> read_step(SourceTextPtr source) {
  const auto tree = read_json(std::move(source));
  if (!tree) return tl::unexpected(tree.error());
  try {
    return document_of(tree->root());
  } catch (Refusal& refusal) {
    return tl::unexpected(std::move(refusal.diagnostics));
  }
}

}  // namespace stowage
