// `quantization_config` of compressed-tensors 0.20 (quantization/quant_config.py, quant_args.py,
// compressors/): groups of layers with a scheme each, in the file's format or the group's own.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "estimator/huggingface/quantisation_reader.hpp"

namespace stowage {

namespace {

constexpr std::array<std::string_view, 6> packed_formats{
    "pack-quantized",  "int-quantized",        "float-quantized",
    "naive-quantized", "nvfp4-pack-quantized", "mxfp4-pack-quantized"};

LayerRule module_rule(QuantisationReader& reader, const YamlNode& item) {
  std::string_view text = item.text;
  if (text == "Linear") return {LayerRule::Kind::linear, {}, std::nullopt};
  if (!text.starts_with("re:")) return {LayerRule::Kind::whole_path, item.text, std::nullopt};
  text.remove_prefix(3);
  return reader.rule(LayerRule::Kind::match, text, item.mark);
}

std::vector<LayerRule> module_rules(QuantisationReader& reader, std::string_view key) {
  std::vector<LayerRule> rules;
  if (!reader.is_set(key)) return rules;
  const YamlNode* list = reader.config().written(key);
  if (!list->is_sequence()) {
    (void)reader.config().words(key);  // the error
    return rules;
  }
  for (const YamlNode* item : list->items) rules.push_back(module_rule(reader, *item));
  return rules;
}

/// The block of values that shares a scale: [rows, columns].
void read_strategy(QuantisationReader& weights, PackedLayout& layout) {
  std::string strategy = weights.text("strategy");
  const bool grouped = weights.is_set("group_size");
  if (strategy.empty()) strategy = grouped ? "group" : "tensor";
  if (strategy == "tensor") {
    layout.block_rows = layout.block_columns = 0;
  } else if (strategy == "channel") {
    layout.block_columns = 0;
  } else if (strategy == "group" || strategy == "tensor_group") {
    layout.block_columns = weights.group_size("group_size", 128);
  } else if (strategy == "block") {
    const std::vector<std::int64_t> block = weights.config().integers("block_structure");
    if (block.size() != 2) {
      weights.refuse("block_structure", fmt::format("blocks of {} numbers", block.size()),
                     "a block has rows and columns");
      return;
    }
    layout.block_rows = block[0];
    layout.block_columns = block[1];
  } else {
    weights.refuse("strategy", fmt::format("the strategy '{}'", strategy),
                   "tensor, channel, group, tensor_group and block are sized");
  }
}

PackedLayout fp4_layout(QuantisationReader& group, std::string_view format) {
  const bool is_nvfp4 = format == "nvfp4-pack-quantized";
  PackedLayout layout{.kind = PackedKind::fp4_packed,
                      .name = is_nvfp4 ? "nvfp4" : "mxfp4",
                      .block_columns = is_nvfp4 ? 16 : 32};
  if (is_nvfp4) layout.scalars = group.is_set("input_activations") ? 2 : 1;
  return layout;
}

PackedLayout layout_of_group(QuantisationReader& group, const YamlNode& scheme,
                             std::string_view format) {
  if (format.find("fp4") != std::string_view::npos) return fp4_layout(group, format);
  QuantisationReader weights(scheme, group.config(), group.loader(), group.config().mistakes());
  PackedLayout layout{.kind = PackedKind::pack_quantized, .name = "compressed-tensors"};
  layout.bits = weights.config().integer("num_bits", 1, 8);
  layout.has_zero_points =
      weights.config().written("symmetric") != nullptr && !weights.config().boolean("symmetric");
  read_strategy(weights, layout);
  if (format == "pack-quantized") return layout;
  layout.kind = PackedKind::scaled;
  layout.name = weights.text("type") == "float" ? "fp8" : "int8";
  if (!group.is_set("input_activations")) return layout;
  const YamlNode* inputs = group.config().written("input_activations");
  const YamlNode* dynamic = inputs->is_mapping() ? inputs->find("dynamic") : nullptr;
  layout.inputs = true;
  if (dynamic == nullptr || dynamic->text != "true") layout.scalars = 1;
  return layout;
}

void read_group(QuantisationReader& group, std::string_view file_format,
                CheckpointFormats& stored) {
  std::string format = group.text("format");
  if (format.empty()) format = file_format;
  const YamlNode* weights = group.config().written("weights");
  if (weights == nullptr || !weights->is_mapping()) return;  // its inputs alone are quantised
  if (std::ranges::find(packed_formats, format) == packed_formats.end()) {
    group.refuse(group.is_set("format") ? "format" : "weights",
                 fmt::format("compressed-tensors in the format '{}'", format),
                 fmt::format("the formats {} are sized", fmt::join(packed_formats, ", ")));
    return;
  }
  stored.groups.push_back({.targets = module_rules(group, "targets"),
                           .base = packed_base(layout_of_group(group, *weights, format))});
}

}  // namespace

void read_compressed_tensors(QuantisationReader& reader, CheckpointFormats& stored) {
  stored.keeps_output = false;
  stored.converts_experts = true;
  std::string format = reader.text("format");
  if (format == "dense") return;
  const YamlNode* sparsity = reader.config().written("sparsity_config");
  const YamlNode* sparse =
      sparsity != nullptr && sparsity->is_mapping() ? sparsity->find("format") : nullptr;
  if (sparse != nullptr && sparse->text != "dense") {
    reader.refuse("sparsity_config", fmt::format("the sparse format '{}'", sparse->text));
    return;
  }
  const YamlNode* groups = reader.config().written("config_groups");
  if (groups == nullptr || !groups->is_mapping()) {
    reader.refuse("config_groups", "compressed-tensors without groups");
    return;
  }
  const bool known = std::ranges::find(packed_formats, format) != packed_formats.end();
  if (!known && !format.empty() && format != "mixed-precision") {
    reader.refuse("format", fmt::format("compressed-tensors in the format '{}'", format),
                  fmt::format("the formats {} are sized", fmt::join(packed_formats, ", ")));
    return;
  }
  stored.kept = module_rules(reader, "ignore");
  if (reader.is_set("kv_cache_scheme")) {
    reader.config().warn("kv_cache_scheme",
                         "the cache's own scheme is not read: keys and values are stored as asked "
                         "for, else as computed");
  }
  for (std::size_t i = 0; i < groups->entry_count(); ++i) {
    if (!groups->value(i).is_mapping()) continue;
    QuantisationReader group(groups->value(i), reader.config(), reader.loader(),
                             reader.config().mistakes());
    read_group(group, format, stored);
  }
}

}  // namespace stowage
