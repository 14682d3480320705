// `quantization_config` of GPTQ: GPTQConfig of transformers 5.24, optimum's convert_model, which
// replaces the linear layers of the repeated blocks, and GPTQModel's `dynamic` and `lm_head`
// (quantization/config.py at f4c327a1).
#include <fmt/format.h>

#include <algorithm>

#include "estimator/huggingface/quantisation_reader.hpp"

namespace stowage {

namespace {

std::int64_t bits_of(QuantisationReader& reader) {
  const std::int64_t bits = reader.config().integer("bits", 2, 8);
  if (bits != 2 && bits != 3 && bits != 4 && bits != 8) {
    reader.refuse("bits", fmt::format("GPTQ of {} bits", bits), "GPTQ has 2, 3, 4 or 8 bits");
  }
  return bits;
}

/// Rules of `dynamic`: "-:pattern" leaves layers out, "+:pattern" or "pattern" gives them bits or a
/// group of their own.
void read_dynamic(QuantisationReader& reader, std::int64_t bits, std::int64_t group,
                  CheckpointFormats& stored) {
  const YamlNode* dynamic = reader.config().written("dynamic");
  if (dynamic == nullptr || !dynamic->is_mapping()) return;
  for (std::size_t i = 0; i < dynamic->entry_count(); ++i) {
    std::string_view pattern = dynamic->key(i).text;
    const bool leaves = pattern.starts_with("-:");
    if (leaves || pattern.starts_with("+:")) pattern.remove_prefix(2);
    LayerRule rule = reader.rule(LayerRule::Kind::match, pattern, dynamic->key(i).mark);
    if (leaves) {
      stored.kept.push_back(std::move(rule));
      continue;
    }
    if (!dynamic->value(i).is_mapping()) continue;
    QuantisationReader own(dynamic->value(i), reader.config(), reader.loader(),
                           reader.config().mistakes());
    const std::int64_t own_bits = own.is_set("bits") ? bits_of(own) : bits;
    stored.groups.push_back(
        {.targets = {std::move(rule)},
         .base = packed_base(gptq_layout(own_bits, own.group_size("group_size", group)))});
  }
}

/// Adds the rule of a name, or of each name of a list. False: it is something else.
bool add_names(const YamlNode& node, std::vector<LayerRule>& rules) {
  if (node.is_scalar()) {
    rules.push_back({LayerRule::Kind::conversion, node.text, std::nullopt});
    return !node.text.empty();
  }
  return node.is_sequence() && std::ranges::all_of(node.items, [&](const YamlNode* item) {
           return add_names(*item, rules);
         });
}

/// The layers that `modules_in_block_to_quantize` lists, by the ends of their paths; all if it is
/// not there.
std::vector<LayerRule> quantised_modules(QuantisationReader& reader) {
  constexpr std::string_view key = "modules_in_block_to_quantize";
  std::vector<LayerRule> rules;
  if (reader.is_set(key) && !add_names(*reader.config().written(key), rules)) {
    reader.config().wrong(key, fmt::format("'quantization_config.{}' must be lists of texts", key));
  }
  if (rules.empty()) rules.push_back({LayerRule::Kind::linear, {}, std::nullopt});
  return rules;
}

}  // namespace

void read_gptq(QuantisationReader& reader, CheckpointFormats& stored) {
  const std::string format = reader.text("checkpoint_format", "format");
  if (!format.empty() && format != "gptq" && format != "gptq_v2") {
    reader.refuse(reader.is_set("checkpoint_format") ? "checkpoint_format" : "format",
                  fmt::format("GPTQ in the format '{}'", format),
                  "the formats gptq and gptq_v2 are sized");
  }
  const std::int64_t bits = bits_of(reader), group = reader.group_size("group_size", 128);
  reader.keep(stored, "modules_to_not_convert", LayerRule::Kind::conversion);
  stored.keeps_output = !reader.is_set("lm_head");
  stored.blocks_alone = true;
  stored.converts_experts = true;
  read_dynamic(reader, bits, group, stored);
  stored.groups.push_back(
      {.targets = quantised_modules(reader), .base = packed_base(gptq_layout(bits, group))});
}

}  // namespace stowage
