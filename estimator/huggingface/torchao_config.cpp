// `quantization_config` of torchao 0.18: {"quant_type": {"default": {"_type", "_data"}}}, as
// transformers 5 writes it, or a word, as transformers 4 did ("int4_weight_only", whose weights
// tinygemm's tiles held).
#include <fmt/format.h>

#include "estimator/huggingface/quantisation_reader.hpp"

namespace stowage {

namespace {

PackedLayout byte_layout(std::string name) {
  return {.kind = PackedKind::scaled,
          .name = std::move(name),
          .bits = 8,
          .block_columns = 0,
          .scale_name = "scale",
          .scale_type = DataType::float32};
}

std::string type_name(const YamlNode& node) {
  const YamlNode* type = node.is_mapping() ? node.find("_type") : nullptr;
  return type != nullptr && type->is_scalar() ? type->text : std::string();
}

/// The group of a mapping of settings, if it has one.
void read_group_size(QuantisationReader& reader, const YamlNode* settings, PackedLayout& layout) {
  if (settings == nullptr || !settings->is_mapping()) return;
  QuantisationReader own(*settings, reader.config(), reader.loader(), reader.config().mistakes());
  layout.block_columns = own.group_size("group_size", layout.block_columns);
}

/// PerRow, PerTensor, PerGroup; a list has the inputs' first and the weight's second.
void read_granularity(QuantisationReader& data, PackedLayout& layout, bool is_per_tensor) {
  const YamlNode* granularity = data.config().written("granularity");
  if (granularity != nullptr && granularity->is_sequence() && !granularity->items.empty()) {
    granularity = granularity->items.back();
  }
  const std::string type = granularity == nullptr ? std::string() : type_name(*granularity);
  if (type == "PerTensor" || (type.empty() && is_per_tensor)) layout.block_rows = 0;
  if (type == "PerGroup") read_group_size(data, granularity->find("_data"), layout);
  if (type.empty() || type == "PerTensor" || type == "PerRow" || type == "PerGroup") return;
  data.refuse("granularity", fmt::format("torchao's granularity '{}'", type),
              "PerRow, PerTensor and PerGroup are sized");
}

bool is_tiled(const YamlNode* format) {
  if (format == nullptr) return false;
  const YamlNode* data = format->is_mapping() ? format->find("_data") : format;
  return data != nullptr &&
         (data->text == "TILE_PACKED_TO_4D" || data->text == "tile_packed_to_4d");
}

/// Nullopt: the type is not sized.
std::optional<BaseSettings> base_of(QuantisationReader& data, std::string_view type) {
  if (type == "Int4WeightOnlyConfig") {
    PackedLayout layout = int4_layout(data.group_size("group_size", 128));
    if (is_tiled(data.config().written("int4_packing_format"))) {
      layout.kind = PackedKind::int4_tiled;
    }
    BaseSettings base = packed_base(std::move(layout));
    base.trains_adapters = false;
    return base;
  }
  if (type == "Int8WeightOnlyConfig" || type == "Int8DynamicActivationInt8WeightConfig") {
    PackedLayout layout = byte_layout("torchao's int8");
    layout.has_zero_points = true;
    layout.inputs = type != "Int8WeightOnlyConfig";
    if (data.is_set("group_size")) layout.block_columns = data.group_size("group_size", 128);
    read_granularity(data, layout, false);
    return packed_base(std::move(layout));
  }
  if (type == "Float8WeightOnlyConfig" || type == "Float8DynamicActivationFloat8WeightConfig") {
    const bool weight_only = type == "Float8WeightOnlyConfig";
    PackedLayout layout = byte_layout("torchao's float8");
    layout.inputs = !weight_only;
    read_granularity(data, layout, !weight_only);
    return packed_base(std::move(layout));
  }
  return std::nullopt;
}

/// The words of transformers 4.
std::optional<BaseSettings> base_of_word(QuantisationReader& reader, std::string_view word) {
  if (word == "int4_weight_only") {
    PackedLayout layout = int4_layout(128);
    layout.kind = PackedKind::int4_tiled;
    read_group_size(reader, reader.config().written("quant_type_kwargs"), layout);
    BaseSettings base = packed_base(std::move(layout));
    base.trains_adapters = false;
    return base;
  }
  if (word == "int8_weight_only" || word == "int8_dynamic_activation_int8_weight") {
    PackedLayout layout = byte_layout("torchao's int8");
    layout.inputs = word != "int8_weight_only";
    return packed_base(std::move(layout));
  }
  return std::nullopt;
}

}  // namespace

void read_torchao(QuantisationReader& reader, CheckpointFormats& stored) {
  const std::string hint =
      "Int4WeightOnlyConfig, Int8WeightOnlyConfig, Float8WeightOnlyConfig and "
      "the dynamic ones of int8 and float8 are sized";
  reader.keep(stored, "modules_to_not_convert", LayerRule::Kind::conversion);
  if (reader.is_set("include_input_output_embeddings")) {
    reader.refuse("include_input_output_embeddings", "torchao's quantised embeddings");
  }
  const YamlNode* type = reader.config().written("quant_type");
  if (type == nullptr) return reader.refuse("quant_type", "torchao without a type", hint);
  std::optional<BaseSettings> base;
  std::string name = type->text;
  if (type->is_scalar()) {
    base = base_of_word(reader, name);
  } else {
    const YamlNode* whole = type->is_mapping() ? type->find("default") : nullptr;
    const YamlNode* data = whole != nullptr && whole->is_mapping() ? whole->find("_data") : nullptr;
    name = whole == nullptr ? std::string() : type_name(*whole);
    if (data != nullptr && data->is_mapping()) {
      QuantisationReader own(*data, reader.config(), reader.loader(), reader.config().mistakes());
      base = base_of(own, name);
    }
  }
  if (!base) return reader.refuse("quant_type", fmt::format("torchao's '{}'", name), hint);
  stored.groups.push_back(group_of_all(*std::move(base)));
}

}  // namespace stowage
