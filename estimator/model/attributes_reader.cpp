#include "estimator/model/attributes_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace stowage {

namespace {

const AttributeSpec* find_attribute(const OperatorRow& row, std::string_view name) {
  for (const AttributeSpec& spec : row.attributes) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

std::vector<std::string_view> attribute_names(const OperatorRow& row) {
  std::vector<std::string_view> names;
  for (const AttributeSpec& spec : row.attributes) names.push_back(spec.name);
  return names;
}

// A row may say "1" for a list of two.
AttributeValue default_of(const AttributeSpec& spec) {
  const auto* number = std::get_if<std::int64_t>(&*spec.default_value);
  if (spec.type != AttributeType::integers || number == nullptr) return *spec.default_value;
  return std::vector<std::int64_t>(static_cast<std::size_t>(std::max(spec.length, 1)), *number);
}

ValueRules rules_for(const AttributeSpec& spec, const ExpressionNames& names) {
  return {.names = names,
          .words = spec.choices,
          .any_text = spec.type == AttributeType::text,
          .only_words = spec.type == AttributeType::choice};
}

bool is_key_of_every_layer(std::string_view key) {
  const auto common = common_layer_keys();
  return std::find(common.begin(), common.end(), key) != common.end();
}

}  // namespace

void AttributesReader::read(const YamlNode* body, LayerEntry& entry) {
  const OperatorRow& row = *entry.row;
  std::vector<std::string_view> settled;  // written, or meant by a misspelt key
  std::vector<AttributeSetting> written;
  for (std::size_t i = 0; body != nullptr && i < body->entry_count(); ++i) {
    const YamlNode& key = body->key(i);
    if (is_key_of_every_layer(key.text)) continue;
    const AttributeSpec* spec = find_attribute(row, key.text);
    if (spec == nullptr) {
      refuse_attribute(row, key, settled);
      entry.broken = true;
      continue;
    }
    settled.push_back(spec->name);
    entry.attribute_marks.emplace_back(spec->name, body->value(i).mark);
    auto value = read_value(body->value(i), spec->name, rules_for(*spec, names_), mistakes_);
    if (value) written.push_back({spec, std::move(*value)});
    if (!value) entry.broken = true;
  }
  complete(row, entry, written, settled);
}

void AttributesReader::refuse_attribute(const OperatorRow& row, const YamlNode& key,
                                        std::vector<std::string_view>& settled) {
  std::vector<std::string_view> candidates = attribute_names(row);
  const auto common = common_layer_keys();
  candidates.insert(candidates.end(), common.begin(), common.end());
  if (const auto meant = closest(key.text, candidates)) settled.push_back(*meant);
  std::string hint = mistakes_.suggest(key.text, candidates);
  if (hint.empty() && !row.attributes.empty()) {
    hint = fmt::format("{} takes {}", row.name, fmt::join(attribute_names(row), ", "));
  }
  mistakes_.error(key.mark, fmt::format("unknown attribute '{}' of {}", key.text, row.name),
                  std::move(hint));
}

AttributesReader::Prepared& AttributesReader::prepared(const OperatorRow& row) {
  const auto [found, fresh] = prepared_.try_emplace(&row);
  Prepared& prepared = found->second;
  if (!fresh) return prepared;
  const auto section = context_.defaults.find(&row);
  for (const AttributeSpec& spec : row.attributes) {
    const AttributeValue* given = nullptr;
    if (section != context_.defaults.end()) {
      for (const auto& [of, value] : section->second) {
        if (of == &spec) given = &value;
      }
    }
    if (given == nullptr && !spec.default_value) {
      prepared.to_be_set.push_back(spec.name);
      prepared.defaults.set(spec.name, std::int64_t{0});
    } else {
      prepared.defaults.set(spec.name, given != nullptr ? *given : default_of(spec));
    }
  }
  return prepared;
}

// Completes the constants in the row's order with the defaults. Attributes that depend on the
// instance are kept for expansion; until then the default or 0 stands in their place.
void AttributesReader::complete(const OperatorRow& row, LayerEntry& entry,
                                std::vector<AttributeSetting>& written,
                                const std::vector<std::string_view>& settled) {
  Prepared& prepared = this->prepared(row);
  entry.constants = prepared.defaults;
  for (AttributeSetting& setting : written) set_written(setting, entry);
  if (entry.constants == prepared.last) {
    entry.constants = prepared.last;
  } else {
    prepared.last = entry.constants;
  }
  std::vector<std::string_view> missing;
  for (const std::string_view name : prepared.to_be_set) {
    if (std::find(settled.begin(), settled.end(), name) == settled.end()) missing.push_back(name);
  }
  if (missing.empty()) return;
  entry.broken = true;
  mistakes_.error(entry.mark,
                  fmt::format("{} needs '{}'", row.name, fmt::join(missing, "' and '")));
}

void AttributesReader::set_written(AttributeSetting& setting, LayerEntry& entry) {
  const AttributeSpec& spec = *setting.spec;
  if (!is_constant(setting.value)) {
    entry.constants.set(spec.name, std::int64_t{0});
    entry.settings.push_back(std::move(setting));
    return;
  }
  const auto value = evaluate(setting.value, {.model = context_.model.values}, mistakes_);
  auto attribute =
      value ? to_attribute(spec, entry.row->name, *value, setting.value, mistakes_) : std::nullopt;
  if (attribute) entry.constants.set(spec.name, std::move(*attribute));
  if (!attribute) entry.broken = true;
}

OperatorDefaults read_defaults(const YamlNode& node, const OperatorRow& row,
                               const ModelDescription& model, Mistakes& mistakes) {
  OperatorDefaults defaults;
  const ExpressionNames names{.model = model.value_names, .has_index = false};
  for (std::size_t i = 0; i < node.entry_count(); ++i) {
    const YamlNode& key = node.key(i);
    const AttributeSpec* spec = find_attribute(row, key.text);
    if (spec == nullptr) {
      mistakes.error(key.mark, fmt::format("unknown attribute '{}' of {}", key.text, row.name),
                     mistakes.suggest(key.text, attribute_names(row)));
      continue;
    }
    const auto written = read_value(node.value(i), spec->name, rules_for(*spec, names), mistakes);
    if (!written) continue;
    const auto value = evaluate(*written, {.model = model.values}, mistakes);
    if (!value) continue;
    auto attribute = to_attribute(*spec, row.name, *value, *written, mistakes);
    if (attribute) defaults.emplace_back(spec, std::move(*attribute));
  }
  return defaults;
}

}  // namespace stowage
