// `train:`: the optimizer, each with its own settings (the optimizer table), and what concerns the
// step as a whole.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "estimator/model/description_reader.hpp"
#include "estimator/model/fine_tuning_reader.hpp"
#include "estimator/model/step_settings_reader.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "estimator/optimizer/other_names.hpp"

namespace stowage {

namespace {

// The keys that do not depend on the optimizer.
constexpr std::string_view optimizer_key = "optimizer", implementation_key = "implementation",
                           loss_in_model_key = "loss_in_model";

const AttributeSpec& implementation_spec() {
  using enum OptimizerImplementation;
  static const AttributeSpec spec{
      .name = implementation_key,
      .type = AttributeType::choice,
      .choices = {to_string(usual), to_string(for_loop), to_string(foreach), to_string(fused)}};
  return spec;
}

const AttributeSpec& loss_in_model_spec() {
  static const AttributeSpec spec{.name = loss_in_model_key, .type = AttributeType::boolean};
  return spec;
}

// Null: the optimizer has no such setting.
const AttributeSpec* spec_of(std::string_view key, const OptimizerRow& row) {
  if (key == implementation_key) return &implementation_spec();
  if (key == loss_in_model_key) return &loss_in_model_spec();
  const bool known = std::any_of(row.settings.begin(), row.settings.end(),
                                 [&](const SettingDefault& s) { return s.name == key; });
  return known ? &find_setting(key)->spec : nullptr;
}

void store(std::string_view key, const AttributeValue& value, TrainSettings& train) {
  if (key == loss_in_model_key) {
    train.loss_in_model = std::get<bool>(value);
  } else if (key == implementation_key) {
    using enum OptimizerImplementation;
    for (const OptimizerImplementation candidate : {usual, for_loop, foreach, fused}) {
      if (to_string(candidate) == std::get<std::string>(value)) {
        train.optimizer.implementation = candidate;
      }
    }
  } else {
    set_value(train.optimizer, *find_setting(key), value);
  }
}

/// The optimizer that `node` names, with its row's defaults, or those of a preset or of a name that
/// says the implementation.
OptimizerSettings read_optimizer(const YamlNode& node, Mistakes& mistakes) {
  const std::vector<OptimizerRow>& rows = optimizer_table();
  const YamlNode* name = node.find(optimizer_key);
  if (name == nullptr) return default_settings(rows[0]);
  if (!name->is_scalar()) {
    mistakes.error(name->mark, fmt::format("'optimizer' takes a name, not {}", describe(*name)),
                   "its settings stand beside it in 'train:'");
    return default_settings(rows[0]);
  }
  if (const auto meant = optimizer_meant(name->text)) {
    OptimizerSettings settings = *named_optimizer(meant->name);
    settings.implementation = meant->implementation;
    return settings;
  }
  std::vector<std::string_view> names;
  names.reserve(std::size(rows));
  for (const OptimizerRow& row : rows) names.push_back(row.name);
  std::string hint = did_you_mean(name->text, names);
  if (hint.empty()) hint = fmt::format("optimizers are {}", fmt::join(names, ", "));
  mistakes.error(name->mark, fmt::format("unknown optimizer {}", describe(*name)), std::move(hint));
  return default_settings(rows[0]);
}

void report_unknown(const YamlNode& key, const OptimizerRow& row, Mistakes& mistakes) {
  std::vector<std::string_view> names;
  for (const SettingDefault& setting : row.settings) names.push_back(setting.name);
  names.push_back(implementation_key);
  std::vector<std::string_view> all = names;
  all.insert(all.end(), {optimizer_key, loss_in_model_key});
  all.insert(all.end(), step_setting_keys().begin(), step_setting_keys().end());
  all.insert(all.end(), fine_tuning_keys().begin(), fine_tuning_keys().end());
  std::string hint = mistakes.suggest(key.text, all);
  if (hint.empty()) hint = fmt::format("{} takes {}", row.name, fmt::join(names, ", "));
  mistakes.error(key.mark, fmt::format("unknown setting '{}' of {}", key.text, row.name),
                 std::move(hint));
}

}  // namespace

TrainSettings read_train(const YamlNode& node, const ModelDescription& model, Mistakes& mistakes) {
  TrainSettings settings;
  settings.optimizer = read_optimizer(node, mistakes);
  const OptimizerRow& row = *find_optimizer(settings.optimizer.name);
  const ValueRules rules{
      .names = {.model = model.value_names, .has_batch = false, .has_index = false}};
  for (std::size_t i = 0; i < node.entry_count(); ++i) {
    const YamlNode& key = node.key(i);
    if (key.text == optimizer_key) continue;
    const auto step_keys = step_setting_keys();
    if (std::find(step_keys.begin(), step_keys.end(), key.text) != step_keys.end()) {
      read_step_setting(key.text, node.value(i), model, settings, mistakes);
      continue;
    }
    const auto tuning_keys = fine_tuning_keys();
    if (std::find(tuning_keys.begin(), tuning_keys.end(), key.text) != tuning_keys.end()) {
      read_fine_tuning_key(key.text, node.value(i), settings.fine_tuning, mistakes);
      continue;
    }
    const AttributeSpec* spec = spec_of(key.text, row);
    if (spec == nullptr) {
      report_unknown(key, row, mistakes);
      continue;
    }
    ValueRules own = rules;
    own.words = spec->choices;
    own.only_words = spec->type == AttributeType::choice;
    const auto written = read_value(node.value(i), key.text, own, mistakes);
    const auto value =
        written ? evaluate(*written, {.model = model.values}, mistakes) : std::nullopt;
    const auto setting =
        value ? to_attribute(*spec, row.name, *value, *written, mistakes) : std::nullopt;
    if (setting) store(key.text, *setting, settings);
  }
  if (const auto problem = problem_of(settings.optimizer)) {
    mistakes.error(node.mark, problem->message, problem->hint);
  }
  return settings;
}

}  // namespace stowage
