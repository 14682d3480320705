#include "estimator/adapt/quantised_base.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "estimator/adapt/graph_edit.hpp"
#include "estimator/adapt/named_layers.hpp"
#include "estimator/base/bytes.hpp"
#include "estimator/base/name_match.hpp"
#include "estimator/catalogue/fine_tuning_rows.hpp"
#include "estimator/model/layer_match.hpp"
#include "estimator/model/operator_row.hpp"

namespace stowage {

namespace {

const OperatorRow& row_of(BaseFormat format) {
  switch (format) {
    case BaseFormat::int8:
      return linear_8bit_row();
    case BaseFormat::fp8:
      return linear_float8_row();
    case BaseFormat::packed:
      return linear_packed_row();
    case BaseFormat::nf4:
    case BaseFormat::fp4:
      break;
  }
  return linear_4bit_row();
}

bool has_code(BaseFormat format) { return format == BaseFormat::nf4 || format == BaseFormat::fp4; }

Attributes attributes_of(const Operator& op, const BaseSettings& base) {
  Attributes attributes;
  attributes.set("features", op.attributes.integer("features"));
  attributes.set("bias", op.attributes.boolean("bias"));
  if (has_code(base.format)) {
    attributes.set("double_quant", base.double_quantised);
    attributes.set("format", std::string(code_name(base.format)));
  }
  if (base.format == BaseFormat::packed) set_attributes(attributes, base.packed);
  return attributes;
}

/// By operator: how its weight is to be quantised; null: not.
using LayerFormats = std::vector<const BaseSettings*>;

/// By operator: it is a linear layer, and no other operator reads its parameters.
std::vector<bool> untied_linear_layers(const ModelGraph& model) {
  std::vector<int> users(model.parameters.size());
  for (const Operator& op : model.operators) {
    for (const ParameterId id : op.parameters) ++users[id.index()];
  }
  std::vector<bool> untied(model.operators.size());
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[i];
    untied[i] =
        is_linear(op) && std::all_of(op.parameters.begin(), op.parameters.end(),
                                     [&](ParameterId id) { return users[id.index()] == 1; });
  }
  return untied;
}

std::int64_t input_features(const ModelGraph& model, const Operator& op) {
  return model.tensor(op.inputs.front()).type.shape.back().constant;
}

/// The library leaves the layer as it is: torchao by its sizes, GPTQ and AWQ if there is one
/// output, as the gate of a shared expert has.
bool is_left(const ModelGraph& model, const Operator& op, const BaseSettings& base) {
  if (base.format != BaseFormat::packed) return false;
  const PackedKind kind = base.packed.kind;
  const bool is_calibrated = kind == PackedKind::gptq || kind == PackedKind::awq ||
                             kind == PackedKind::awq_gemv || kind == PackedKind::awq_gemv_fast;
  if (is_calibrated && op.attributes.integer("features") == 1) return true;
  return leaves_as_is(base.packed, op.attributes.integer("features"), input_features(model, op));
}

Result<LayerFormats> formats_as_asked(const ModelGraph& model, const BaseSettings& base) {
  auto skipped = named_layers(model, base.skipped, is_linear, "is a linear layer");
  if (!skipped) return tl::unexpected(std::move(skipped.error()));
  if (const OperatorId last = output_layer(model); base.skipped.empty() && last.valid()) {
    (*skipped)[last.index()] = true;
  }
  const std::vector<bool> untied = untied_linear_layers(model);
  LayerFormats formats(model.operators.size());
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[i];
    if (untied[i] && !(*skipped)[i] && !is_left(model, op, base)) formats[i] = &base;
  }
  return formats;
}

/// By tensor: operators choose experts by it, so that the layer that makes it is a router.
std::vector<bool> router_logits(const ModelGraph& model) {
  std::vector<bool> logits(model.tensors.size());
  for (const Operator& op : model.operators) {
    if (op.row->name == "routed_experts") logits[op.inputs[1].index()] = true;
  }
  return logits;
}

/// The layer is one of a list of modules: a part of its path is a number.
bool is_in_block(std::string_view path) {
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('.', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.find_first_not_of("0123456789") == std::string_view::npos) return true;
    at = end + 1;
  }
  return false;
}

bool any_means(const std::vector<LayerRule>& rules, std::string_view path) {
  return std::any_of(rules.begin(), rules.end(),
                     [&](const LayerRule& rule) { return means(rule, path); });
}

LayerFormats formats_as_stored(const ModelGraph& model, const CheckpointFormats& stored) {
  const OperatorId output = output_layer(model);
  const std::vector<bool> untied = untied_linear_layers(model), logits = router_logits(model);
  LayerFormats formats(model.operators.size());
  if (stored.experts_alone) return formats;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[i];
    const bool is_output = output.valid() && output.index() == i;
    if (!untied[i] || (is_output && stored.keeps_output) || any_means(stored.kept, op.name) ||
        (stored.blocks_alone && !is_output && !is_in_block(op.name)) ||
        logits[op.outputs.front().index()]) {
      continue;
    }
    for (const FormatGroup& group : stored.groups) {
      if (!any_means(group.targets, op.name)) continue;
      if (!is_left(model, op, group.base)) formats[i] = &group.base;
      break;
    }
  }
  return formats;
}

/// Removes the parameters that no operator reads any more.
void drop_parameters(ModelGraph& model, const std::vector<bool>& dropped) {
  std::vector<ParameterId> place(model.parameters.size());
  std::vector<Parameter> kept;
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    if (i < dropped.size() && dropped[i]) continue;
    place[i] = ParameterId::of(kept.size());
    kept.push_back(std::move(model.parameters[i]));
  }
  model.parameters = std::move(kept);
  for (Operator& op : model.operators) {
    for (ParameterId& id : op.parameters) id = place[id.index()];
  }
}

/// By operator: it holds the weights of experts, and how they are to be quantised; null: no.
LayerFormats formats_of_experts(const ModelGraph& model, const CheckpointFormats& stored) {
  LayerFormats formats(model.operators.size());
  if (!stored.converts_experts) return formats;
  for (const Operator& op : model.operators) {
    if (op.row->name != "routed_experts") continue;
    for (std::size_t i = 2; i < 4; ++i) {
      const OperatorId producer = model.tensor(op.inputs[i]).producer;
      if (!producer.valid() || model.op(producer).row->name != "parameter") continue;
      const std::string_view name = model.op(producer).name;
      const std::size_t dot = std::min(name.rfind('.'), name.size());
      // Lists name an expert's layer as the checkpoint does: "experts.0.down_proj".
      std::string layer(name.substr(0, dot));
      if (!stored.experts_alone) layer += i == 2 ? ".0.gate_proj" : ".0.down_proj";
      if (any_means(stored.kept, layer)) continue;
      for (const FormatGroup& group : stored.groups) {
        if (!any_means(group.targets, layer)) continue;
        if (group.base.format == BaseFormat::packed) formats[producer.index()] = &group.base;
        break;
      }
    }
  }
  return formats;
}

/// How the operator that reads a weight of experts has it.
enum class ExpertsWeight {
  one,         ///< [experts, features, in]
  both,        ///< as above: two projections in one tensor
  transposed,  ///< [experts, in, features]: gpt-oss, whose two projections are packed as one
};

/// By tensor: how routed_experts has it.
std::vector<ExpertsWeight> experts_weights(const ModelGraph& model) {
  std::vector<ExpertsWeight> weights(model.tensors.size(), ExpertsWeight::one);
  for (const Operator& op : model.operators) {
    if (op.row->name != "routed_experts") continue;
    const bool clamped = op.attributes.text("form") == "clamped";
    weights[op.inputs[2].index()] = clamped ? ExpertsWeight::transposed : ExpertsWeight::both;
    if (clamped) weights[op.inputs[3].index()] = ExpertsWeight::transposed;
  }
  return weights;
}

/// Packs the weights of experts; of both up projections each by itself, as checkpoints have them.
Result<void> pack_experts(ModelGraph& model, Operator& op, const BaseSettings& base,
                          ExpertsWeight weight, std::vector<bool>& dropped) {
  const OperatorRow& row = packed_parameter_row();
  const Shape shape = model.tensor(op.outputs.front()).type.shape;
  const std::int64_t halves = weight == ExpertsWeight::both ? 2 : 1;
  const bool transposed = weight == ExpertsWeight::transposed;
  Attributes attributes;
  attributes.set("shape", shape);
  attributes.set("layers", shape[0].constant * halves);
  attributes.set("features", shape[transposed ? 2 : 1].constant / halves);
  attributes.set("in", shape[transposed ? 1 : 2].constant);
  set_attributes(attributes, base.packed);
  const auto inference = inferred(model, row, attributes, op.inputs, op.name, op.span);
  if (!inference) return tl::unexpected(inference.error());
  for (const ParameterId id : op.parameters) dropped[id.index()] = true;
  op.parameters = add_parameters(model, op.name, *inference, float_type(model.precision), false);
  model.parameters[op.parameters.front().index()].values = element_count(shape).constant;
  op.row = &row;
  op.attributes = std::move(attributes);
  return {};
}

Result<void> quantise(ModelGraph& model, Operator& op, const BaseSettings& base,
                      std::vector<bool>& dropped) {
  const OperatorRow& row = row_of(base.format);
  Attributes attributes = attributes_of(op, base);
  const auto inference = inferred(model, row, attributes, op.inputs, op.name, op.span);
  if (!inference) return tl::unexpected(inference.error());
  const Parameter& weight = model.parameter(op.parameters.front());
  const std::int64_t values = element_count(weight.type.shape).constant;
  for (const ParameterId id : op.parameters) dropped[id.index()] = true;
  op.parameters = add_parameters(model, op.name, *inference, float_type(model.precision), false);
  model.parameters[op.parameters.front().index()].values = values;
  op.row = &row;
  op.attributes = std::move(attributes);
  return {};
}

std::string words_of(const BaseSettings& base) {
  if (base.format == BaseFormat::packed) {
    return fmt::format("{} ({})", describe(base.packed), tensor_names(base.packed));
  }
  return fmt::format(
      "{}{}", to_string(base),
      base.double_quantised && has_code(base.format) ? ", their maxima in 8 bits" : "");
}

/// "196 linear layers in nf4", a part for each format in the order of the layers.
std::string count_words(const LayerFormats& formats) {
  std::vector<std::pair<std::string, std::int64_t>> counts;
  for (const BaseSettings* base : formats) {
    if (base == nullptr) continue;
    const std::string words = words_of(*base);
    const auto found = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& entry) { return entry.first == words; });
    if (found == counts.end()) {
      counts.emplace_back(words, 1);
    } else {
      ++found->second;
    }
  }
  std::string text;
  for (const auto& [words, count] : counts) {
    text += fmt::format("{}{}{} in {}", text.empty() ? "" : ", ", count,
                        text.empty() ? count == 1 ? " linear layer" : " linear layers" : "", words);
  }
  return text;
}

/// What is not counted of these formats; empty: nothing.
Diagnostics uncounted(const LayerFormats& formats) {
  const bool has_int8 = std::any_of(formats.begin(), formats.end(), [](const BaseSettings* base) {
    return base != nullptr && base->format == BaseFormat::int8;
  });
  if (!has_int8) return {};
  return {{.severity = Severity::note,
           .message = "not counted: columns of an int8 layer's input with a value of 6 or more "
                      "(LLM.int8()'s outliers), which depend on the values; training keeps such a "
                      "column beside the input, 2 bytes a row"}};
}

/// "lm_head", "lm_head, gate and 2 others": the linear layers that keep their format.
std::string kept_words(const ModelGraph& model) {
  constexpr std::size_t most_named = 3;
  std::vector<std::string> names;
  for (const Operator& op : model.operators) {
    std::string name(last_part(op.name));
    if (op.row->name != "linear" || std::ranges::find(names, name) != names.end()) continue;
    names.push_back(std::move(name));
  }
  return listed(names, most_named);
}

Bytes bytes_of_weights(const ModelGraph& model) {
  std::int64_t bytes = 0;
  for (const Parameter& parameter : model.parameters) {
    bytes += element_count(parameter.type.shape).constant * element_size(parameter.type.type);
  }
  return Bytes(bytes);
}

void make_float32(ModelGraph& model, TensorId bias) {
  const OperatorId producer = model.tensor(bias).producer;
  if (!producer.valid() || model.op(producer).parameters.size() != 1) return;
  model.parameters[model.op(producer).parameters.front().index()].type.type = DataType::float32;
  model.tensors[bias.index()].type.type = DataType::float32;
}

/// gpt-oss' packed experts run in kernels that gather, add biases and gate within themselves.
void run_packed_experts(ModelGraph& model, bool wide_biases) {
  for (Operator& op : model.operators) {
    if (op.row->name != "routed_experts" || op.attributes.text("form") != "clamped") continue;
    const OperatorId up = model.tensor(op.inputs[2]).producer;
    const bool packed = up.valid() && model.op(up).row == &packed_parameter_row();
    op.attributes.set("fused", packed);
    if (!packed || !wide_biases) continue;
    make_float32(model, op.inputs[4]);
    make_float32(model, op.inputs[5]);
  }
}

/// `experts`: formats of experts' weights; empty: of none.
Result<ModelGraph> with_formats(ModelGraph model, const LayerFormats& formats,
                                const LayerFormats& experts) {
  const std::vector<ExpertsWeight> weights = experts_weights(model);
  std::vector<bool> dropped(model.parameters.size());
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    Operator& op = model.operators[i];
    if (formats[i] != nullptr) {
      if (auto made = quantise(model, op, *formats[i], dropped); !made) {
        return tl::unexpected(std::move(made.error()));
      }
    }
    if (experts.empty() || experts[i] == nullptr) continue;
    const ExpertsWeight weight = weights[op.outputs.front().index()];
    if (auto made = pack_experts(model, op, *experts[i], weight, dropped); !made) {
      return tl::unexpected(std::move(made.error()));
    }
  }
  drop_parameters(model, dropped);
  for (Parameter& parameter : model.parameters) parameter.trainable = false;
  return model;
}

bool any_formats(const LayerFormats& formats) {
  return std::any_of(formats.begin(), formats.end(),
                     [](const BaseSettings* format) { return format != nullptr; });
}

Result<void> check_base(const ModelGraph& model, const BaseSettings& base, bool any) {
  if (model.precision != Precision::fp32 && model.precision != Precision::fp16 &&
      model.precision != Precision::bf16) {
    return failure(
        fmt::format("a base in {} computes in the format of its inputs, under fp32, "
                    "fp16 or bf16, not under {}",
                    to_string(base), to_string(model.precision)));
  }
  if (!any) return failure(fmt::format("'{}' has no linear layer to quantise", model.name));
  return {};
}

/// "196 linear layers in nf4, and the experts", "the experts in mxfp4"
std::string converted_words(const LayerFormats& formats, bool packed, const BaseSettings& base) {
  if (!any_formats(formats)) return fmt::format("the experts in {}", words_of(base));
  return count_words(formats) + (packed ? ", and the experts" : "");
}

/// The lists of a file leave all experts as they are.
ModelGraph without_packed_experts(ModelGraph model, const CheckpointFormats& stored) {
  model.warnings.push_back(
      {.severity = Severity::note,
       .message = fmt::format("its quantization_config ({}) leaves all experts as they are",
                              stored.method)});
  return model;
}

}  // namespace

Result<ModelGraph> with_quantised_base(ModelGraph model, const BaseSettings& base) {
  const auto formats = formats_as_asked(model, base);
  if (!formats) return tl::unexpected(formats.error());
  if (auto suits = check_base(model, base, any_formats(*formats)); !suits) {
    return tl::unexpected(std::move(suits.error()));
  }
  auto made = with_formats(std::move(model), *formats, {});
  if (!made) return made;
  made->warnings.push_back({.severity = Severity::note, .message = count_words(*formats)});
  for (Diagnostic& note : uncounted(*formats)) made->warnings.push_back(std::move(note));
  return made;
}

Result<ModelGraph> with_checkpoint_formats(ModelGraph model, const CheckpointFormats& stored) {
  const LayerFormats formats = formats_as_stored(model, stored);
  const BaseSettings& base = stored.groups.front().base;
  const LayerFormats experts = formats_of_experts(model, stored);
  const bool packed = any_formats(experts);
  if (stored.experts_alone && !packed) return without_packed_experts(std::move(model), stored);
  if (auto suits = check_base(model, base, stored.experts_alone || any_formats(formats)); !suits) {
    return tl::unexpected(std::move(suits.error()));
  }
  auto made = with_formats(std::move(model), formats, experts);
  if (!made) return made;
  run_packed_experts(*made, stored.wide_biases);
  const std::string kept = kept_words(*made);
  made->warnings.push_back(
      {.severity = Severity::note,
       .message = fmt::format(
           "as its quantization_config says: {}{}; {} of weights and their tables in all",
           converted_words(formats, packed, base), kept.empty() ? "" : "; not quantised: " + kept,
           format_bytes(bytes_of_weights(*made)))});
  for (Diagnostic& note : uncounted(formats)) made->warnings.push_back(std::move(note));
  made->fine_tuning.base = base;
  return made;
}

}  // namespace stowage
