#include "estimator/huggingface/quantisation_reader.hpp"

#include <fmt/format.h>

namespace stowage {

bool QuantisationReader::is_set(std::string_view key) {
  const YamlNode* node = config_.written(key);
  if (node == nullptr || node->kind == YamlNode::Kind::null) return false;
  return !node->is_scalar() || node->quoted || (node->text != "false" && node->text != "null");
}

std::string QuantisationReader::text(std::string_view key, std::string_view other) {
  if (is_set(key)) return config_.word(key);
  return !other.empty() && is_set(other) ? config_.word(other) : std::string();
}

std::int64_t QuantisationReader::group_size(std::string_view key, std::int64_t usual) {
  if (!is_set(key)) return usual;
  const std::int64_t group = config_.integer(key, -1);
  if (group == 0) refuse(key, "a group of 0 values");
  return group == -1 ? 0 : group;
}

LayerRule QuantisationReader::rule(LayerRule::Kind kind, std::string_view text, const Mark& mark) {
  LayerRule made{.kind = kind, .text = std::string(text), .pattern = std::nullopt};
  if (kind == LayerRule::Kind::linear || kind == LayerRule::Kind::whole_path) return made;
  auto pattern = NamePattern::parse(text);
  if (pattern) {
    made.pattern = *std::move(pattern);
  } else {
    config_.mistakes().error(mark, pattern.error().front().message,
                             "letters, ., classes, groups, |, *, +, ?, ^ and $ are read");
  }
  return made;
}

void QuantisationReader::keep(CheckpointFormats& stored, std::string_view key,
                              LayerRule::Kind kind) {
  if (!is_set(key)) return;
  stored.keeps_output = false;
  const YamlNode* list = config_.written(key);
  if (!list->is_sequence()) {
    (void)config_.words(key);  // the error
    return;
  }
  for (const YamlNode* item : list->items) {
    if (!item->is_scalar()) {
      (void)config_.words(key);
      return;
    }
    stored.kept.push_back(rule(kind, item->text, item->mark));
  }
}

void QuantisationReader::refuse(std::string_view key, const std::string& message,
                                std::string hint) {
  config_.wrong(key,
                fmt::format("{}: weights that are quantised in this way are not sized", message),
                std::move(hint));
}

FormatGroup group_of_all(BaseSettings base) {
  return {.targets = {{.kind = LayerRule::Kind::linear, .text = {}, .pattern = std::nullopt}},
          .base = std::move(base)};
}

BaseSettings packed_base(PackedLayout layout) {
  BaseSettings base;
  base.format = BaseFormat::packed;
  base.packed = std::move(layout);
  return base;
}

}  // namespace stowage
