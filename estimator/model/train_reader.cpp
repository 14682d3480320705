#include <fmt/format.h>

#include <algorithm>

#include "estimator/model/description_reader.hpp"

namespace stowage {

namespace {

struct OptimizerKind {
  std::string_view name;
  double learning_rate;  // where none is written
  double weight_decay;
  std::vector<std::string_view> keys;
};

const std::vector<OptimizerKind>& optimizer_kinds() {
  static const std::vector<OptimizerKind> kinds = {
      {"sgd", 0.01, 0, {"learning_rate", "momentum", "nesterov", "weight_decay"}},
      {"adam", 0.001, 0, {"learning_rate", "beta1", "beta2", "epsilon", "weight_decay"}},
      {"adamw", 0.001, 0.01, {"learning_rate", "beta1", "beta2", "epsilon", "weight_decay"}}};
  return kinds;
}

constexpr double largest_below_one = 0x1.fffffffffffffp-1;

// What each key takes.
AttributeSpec spec_of(std::string_view key) {
  if (key == "nesterov" || key == "loss_in_model")
    return {.name = key, .type = AttributeType::boolean};
  AttributeSpec spec{.name = key, .type = AttributeType::real, .minimum = 0};
  if (key == "beta1" || key == "beta2") spec.maximum = largest_below_one;
  return spec;
}

void store(std::string_view key, const AttributeValue& value, TrainSettings& train) {
  OptimizerSettings& settings = train.optimizer;
  if (key == "loss_in_model") {
    train.loss_in_model = std::get<bool>(value);
    return;
  }
  if (key == "nesterov") {
    settings.nesterov = std::get<bool>(value);
    return;
  }
  const double number = std::get<double>(value);
  if (key == "learning_rate") settings.learning_rate = number;
  if (key == "momentum") settings.momentum = number;
  if (key == "weight_decay") settings.weight_decay = number;
  if (key == "beta1") settings.beta1 = number;
  if (key == "beta2") settings.beta2 = number;
  if (key == "epsilon") settings.epsilon = number;
}

const OptimizerKind& read_kind(const YamlNode& node, Mistakes& mistakes) {
  const std::vector<OptimizerKind>& kinds = optimizer_kinds();
  const YamlNode* name = node.find("optimizer");
  if (name == nullptr) return kinds[0];
  std::vector<std::string_view> names;
  for (const OptimizerKind& kind : kinds) {
    if (name->is_scalar() && kind.name == name->text) return kind;
    names.push_back(kind.name);
  }
  std::string hint = name->is_scalar() ? did_you_mean(name->text, names) : std::string();
  if (hint.empty()) hint = fmt::format("optimizers are {}", fmt::join(names, ", "));
  mistakes.error(name->mark, fmt::format("unknown optimizer {}", describe(*name)), std::move(hint));
  return kinds[0];
}

}  // namespace

TrainSettings read_train(const YamlNode& node, const ModelDescription& model, Mistakes& mistakes) {
  const OptimizerKind& kind = read_kind(node, mistakes);
  TrainSettings settings;
  settings.optimizer.name = kind.name;
  settings.optimizer.learning_rate = kind.learning_rate;
  settings.optimizer.weight_decay = kind.weight_decay;
  const ValueRules rules{
      .names = {.model = model.value_names, .has_batch = false, .has_index = false}};
  for (std::size_t i = 0; i < node.entry_count(); ++i) {
    const YamlNode& key = node.key(i);
    if (key.text == "optimizer") continue;
    const bool of_optimizer =
        std::find(kind.keys.begin(), kind.keys.end(), key.text) != kind.keys.end();
    if (!of_optimizer && key.text != "loss_in_model") {
      std::string hint = mistakes.suggest(key.text, kind.keys);
      if (hint.empty()) hint = fmt::format("{} takes {}", kind.name, fmt::join(kind.keys, ", "));
      mistakes.error(key.mark, fmt::format("unknown setting '{}' of {}", key.text, kind.name),
                     std::move(hint));
      continue;
    }
    const AttributeSpec spec = spec_of(key.text);
    const auto written = read_value(node.value(i), key.text, rules, mistakes);
    const auto value =
        written ? evaluate(*written, {.model = model.values}, mistakes) : std::nullopt;
    const auto setting =
        value ? to_attribute(spec, kind.name, *value, *written, mistakes) : std::nullopt;
    if (setting) store(key.text, *setting, settings);
  }
  return settings;
}

}  // namespace stowage
