// `quantization_config` of torchao 0.18: {"quant_type": {"default": {"_type", "_data"}}}, as
// transformers 5 writes it, or a word, as transformers 4 did ("int4_weight_only", whose weights
// tinygemm's tiles held).
//
// Under transformers torchao's own Python code runs the products, operator by operator. A server
// with a paged cache is taken to fuse them.
#include <fmt/format.h>

#include "estimator/huggingface/quantisation_reader.hpp"

namespace stowage {

namespace {

/// `inputs`: they are quantised to the same type.
PackedLayout byte_layout(const WeightLoader& loader, TorchaoBytes bytes, bool inputs) {
  const std::string_view type = bytes == TorchaoBytes::int8 ? "int8" : "float8";
  return {.kind = PackedKind::scaled,
          .name = inputs ? fmt::format("torchao's {0} with inputs in {0}", type)
                         : fmt::format("torchao's {}", type),
          .bits = 8,
          .block_columns = 0,
          .scale_name = "scale",
          .scale_type = DataType::float32,
          .inputs = inputs,
          .torchao = bytes,
          .fused = loader.is_paged};
}

/// No gradient comes through quantised inputs: rounding to int8 runs without autograd, and
/// _scaled_mm has no derivative.
BaseSettings byte_base(PackedLayout layout) {
  const bool passes_gradients = !layout.inputs;
  BaseSettings base = packed_base(std::move(layout));
  base.trains_adapters = passes_gradients;
  return base;
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

/// A value of an enumeration, which is written as it is or as {"_type", "_data"}, in small letters.
std::string enumerated(QuantisationReader& data, std::string_view key) {
  const YamlNode* node = data.config().written(key);
  if (node != nullptr && node->is_mapping()) node = node->find("_data");
  std::string text = node != nullptr && node->is_scalar() ? node->text : std::string();
  for (char& letter : text) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter + 32);
  }
  return text;
}

PackedLayout int4_of_torchao(const WeightLoader& loader, std::int64_t group, bool is_tiled) {
  PackedLayout layout = int4_layout(group);
  if (is_tiled) layout.kind = PackedKind::int4_tiled;
  layout.fused = loader.is_paged;
  return layout;
}

BaseSettings int8_base(QuantisationReader& data, bool inputs) {
  PackedLayout layout = byte_layout(data.loader(), TorchaoBytes::int8, inputs);
  layout.has_zero_points = true;
  layout.input_zero_points = inputs && enumerated(data, "act_mapping_type") == "asymmetric";
  if (data.is_set("group_size")) layout.block_columns = data.group_size("group_size", 128);
  read_granularity(data, layout, false);
  return byte_base(std::move(layout));
}

BaseSettings float8_base(QuantisationReader& data, bool inputs) {
  PackedLayout layout = byte_layout(data.loader(), TorchaoBytes::float8, inputs);
  read_granularity(data, layout, inputs);
  const std::string packing = enumerated(data, "packing_format");
  if (!packing.empty() && packing != "plain") {
    data.refuse("packing_format", fmt::format("torchao's float8 packed as '{}'", packing),
                "the format PLAIN is sized");
  }
  // mslk's kernels, for inputs with a scale a row.
  const bool by_rows = layout.block_rows != 0 && layout.block_columns == 0;
  if (inputs && by_rows && enumerated(data, "kernel_preference") == "mslk") layout.fused = true;
  return byte_base(std::move(layout));
}

/// Nullopt: the type is not sized.
std::optional<BaseSettings> base_of(QuantisationReader& data, std::string_view type) {
  if (type == "Int4WeightOnlyConfig") {
    const bool is_tiled = enumerated(data, "int4_packing_format") == "tile_packed_to_4d";
    PackedLayout layout =
        int4_of_torchao(data.loader(), data.group_size("group_size", 128), is_tiled);
    BaseSettings base = packed_base(std::move(layout));
    base.trains_adapters = false;
    return base;
  }
  if (type == "Int8WeightOnlyConfig") return int8_base(data, false);
  if (type == "Int8DynamicActivationInt8WeightConfig") return int8_base(data, true);
  if (type == "Float8WeightOnlyConfig") return float8_base(data, false);
  if (type == "Float8DynamicActivationFloat8WeightConfig") return float8_base(data, true);
  return std::nullopt;
}

/// The words of transformers 4.
std::optional<BaseSettings> base_of_word(QuantisationReader& reader, std::string_view word) {
  if (word == "int4_weight_only") {
    PackedLayout layout = int4_of_torchao(reader.loader(), 128, true);
    read_group_size(reader, reader.config().written("quant_type_kwargs"), layout);
    BaseSettings base = packed_base(std::move(layout));
    base.trains_adapters = false;
    return base;
  }
  if (word == "int8_weight_only" || word == "int8_dynamic_activation_int8_weight") {
    return byte_base(byte_layout(reader.loader(), TorchaoBytes::int8, word != "int8_weight_only"));
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
