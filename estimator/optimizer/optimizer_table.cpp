#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>

#include "estimator/optimizer/optimizer_row.hpp"
#include "estimator/optimizer/rows.hpp"

namespace stowage {

namespace {

constexpr double largest_below_one = 0x1.fffffffffffffp-1;

OptimizerSetting number(std::string_view name, double OptimizerSettings::*member,
                        std::string_view doc, std::optional<double> maximum = std::nullopt) {
  return {.spec = {.name = name,
                   .type = AttributeType::real,
                   .doc = doc,
                   .minimum = 0,
                   .maximum = maximum},
          .member = member};
}

OptimizerSetting flag(std::string_view name, bool OptimizerSettings::*member,
                      std::string_view doc) {
  return {.spec = {.name = name, .type = AttributeType::boolean, .doc = doc}, .member = member};
}

template <typename Row>
const Row* find_named(const std::vector<Row>& rows, std::string_view name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

void apply(OptimizerSettings& settings, const std::vector<SettingDefault>& values) {
  for (const SettingDefault& value : values) {
    const OptimizerSetting* setting = find_setting(value.name);
    assert(setting != nullptr);
    set_value(settings, *setting, value.value);
  }
}

}  // namespace

std::string_view to_string(OptimizerImplementation implementation) {
  switch (implementation) {
    case OptimizerImplementation::usual:
      return "default";
    case OptimizerImplementation::for_loop:
      return "for-loop";
    case OptimizerImplementation::foreach:
      return "foreach";
    case OptimizerImplementation::fused:
      return "fused";
  }
  return "";
}

std::string_view to_string(MasterWeights master_weights) {
  switch (master_weights) {
    case MasterWeights::none:
      return "none";
    case MasterWeights::weights:
      return "weights";
    case MasterWeights::weights_and_gradients:
      return "weights-and-gradients";
  }
  return "";
}

std::int64_t element_count(const UpdatedTensor& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

const std::vector<OptimizerRow>& optimizer_table() {
  static const std::vector<OptimizerRow> table = {optimizers::sgd(),
                                                  optimizers::adam(),
                                                  optimizers::adamw(),
                                                  optimizers::adagrad(),
                                                  optimizers::rmsprop(),
                                                  optimizers::adadelta(),
                                                  optimizers::adamax(),
                                                  optimizers::nadam(),
                                                  optimizers::radam(),
                                                  optimizers::adafactor(),
                                                  optimizers::lion(),
                                                  optimizers::lamb(),
                                                  optimizers::adam8bit(),
                                                  optimizers::adamw8bit(),
                                                  optimizers::transformers_adafactor(),
                                                  optimizers::paged_adamw_32bit(),
                                                  optimizers::paged_adamw_8bit(),
                                                  optimizers::paged_lion_32bit(),
                                                  optimizers::paged_lion_8bit()};
  return table;
}

const std::vector<OptimizerPreset>& optimizer_presets() {
  static const std::vector<OptimizerPreset> presets = {
      {"momentum", "sgd", {{"momentum", 0.9}}},
      {"nesterov", "sgd", {{"momentum", 0.9}, {"nesterov", true}}},
      {"amsgrad", "adam", {{"amsgrad", true}}},
      {"rmsprop-momentum", "rmsprop", {{"momentum", 0.9}}},
      {"rmsprop-centered", "rmsprop", {{"centered", true}}}};
  return presets;
}

const std::vector<OptimizerSetting>& setting_table() {
  using S = OptimizerSettings;
  static const std::vector<OptimizerSetting> table = {
      number("learning_rate", &S::learning_rate, "the step's size"),
      number("momentum", &S::momentum, "share of the last step in the next; above 0 it is kept"),
      flag("nesterov", &S::nesterov, "Nesterov's momentum"),
      number("weight_decay", &S::weight_decay, "how fast weights shrink"),
      number("beta1", &S::beta1, "decay of the first moment", largest_below_one),
      number("beta2", &S::beta2, "decay of the second moment", largest_below_one),
      number("epsilon", &S::epsilon, "what keeps the denominator from 0"),
      number("dampening", &S::dampening, "share of the gradient that momentum does not take"),
      flag("amsgrad", &S::amsgrad, "keeps the largest second moment as well"),
      flag("centered", &S::centered, "keeps the gradients' mean as well"),
      flag("decoupled_weight_decay", &S::decoupled_weight_decay, "weight decay as in AdamW"),
      number("smoothing", &S::smoothing, "decay of the squares' mean: PyTorch's alpha, or rho",
             largest_below_one),
      number("learning_rate_decay", &S::learning_rate_decay, "how fast the learning rate falls"),
      number("momentum_decay", &S::momentum_decay, "how fast the momentum's schedule rises"),
      number("decay_rate", &S::decay_rate, "exponent of the second moment's decay"),
      number("clip_threshold", &S::clip_threshold, "largest root mean square of a step"),
      number("max_gradient_norm", &S::max_gradient_norm,
             "norm to which all gradients together are clipped; 0: never")};
  return table;
}

const OptimizerRow* find_optimizer(std::string_view name) {
  return find_named(optimizer_table(), name);
}

const OptimizerSetting* find_setting(std::string_view name) {
  const auto& table = setting_table();
  const auto found = std::find_if(table.begin(), table.end(), [&](const OptimizerSetting& setting) {
    return setting.spec.name == name;
  });
  return found == table.end() ? nullptr : &*found;
}

OptimizerSettings default_settings(const OptimizerRow& row) {
  OptimizerSettings settings;
  settings.name = row.name;
  apply(settings, row.settings);
  return settings;
}

std::optional<OptimizerSettings> named_optimizer(std::string_view name) {
  if (const OptimizerRow* row = find_optimizer(name)) return default_settings(*row);
  const OptimizerPreset* preset = find_named(optimizer_presets(), name);
  if (preset == nullptr) return std::nullopt;
  OptimizerSettings settings = default_settings(*find_optimizer(preset->row));
  apply(settings, preset->settings);
  return settings;
}

std::vector<std::string_view> optimizer_names() {
  std::vector<std::string_view> names;
  for (const OptimizerRow& row : optimizer_table()) names.push_back(row.name);
  for (const OptimizerPreset& preset : optimizer_presets()) names.push_back(preset.name);
  return names;
}

AttributeValue value_of(const OptimizerSettings& settings, const OptimizerSetting& setting) {
  return std::visit([&](const auto member) { return AttributeValue(settings.*member); },
                    setting.member);
}

void set_value(OptimizerSettings& settings, const OptimizerSetting& setting,
               const AttributeValue& value) {
  if (const auto* member = std::get_if<bool OptimizerSettings::*>(&setting.member)) {
    settings.*(*member) = std::get<bool>(value);
  } else {
    settings.*std::get<double OptimizerSettings::*>(setting.member) = std::get<double>(value);
  }
}

std::vector<OptimizerImplementation> implementations(const OptimizerRow& row) {
  using enum OptimizerImplementation;
  std::vector<OptimizerImplementation> found{row.usual};
  const auto add = [&](OptimizerImplementation implementation, UpdateRule rule) {
    if (rule != nullptr && implementation != row.usual) found.push_back(implementation);
  };
  add(for_loop, row.for_loop);
  add(foreach, row.foreach);
  add(fused, row.fused);
  return found;
}

OptimizerImplementation implementation_of(const OptimizerSettings& settings) {
  const OptimizerRow* row = find_optimizer(settings.name);
  assert(row != nullptr);
  if (settings.implementation != OptimizerImplementation::usual) return settings.implementation;
  const bool masters = settings.master_weights != MasterWeights::none;
  return masters && row->fused != nullptr ? OptimizerImplementation::fused : row->usual;
}

std::optional<OptimizerProblem> problem_of(const OptimizerSettings& settings) {
  const OptimizerRow* row = find_optimizer(settings.name);
  if (row == nullptr) {
    std::vector<std::string_view> names;
    for (const OptimizerRow& known : optimizer_table()) names.push_back(known.name);
    return OptimizerProblem{fmt::format("unknown optimizer '{}'", settings.name),
                            fmt::format("optimizers are {}", fmt::join(names, ", "))};
  }
  if (settings.nesterov && settings.momentum == 0) {
    return OptimizerProblem{"nesterov needs a momentum", "momentum: 0.9 is usual"};
  }
  if (settings.nesterov && settings.dampening != 0) {
    return OptimizerProblem{"nesterov takes no dampening", "leave it at 0"};
  }
  const auto known = implementations(*row);
  if (settings.implementation == OptimizerImplementation::usual ||
      std::find(known.begin(), known.end(), settings.implementation) != known.end()) {
    return std::nullopt;
  }
  std::vector<std::string_view> words;
  for (const OptimizerImplementation implementation : known) {
    words.push_back(to_string(implementation));
  }
  return OptimizerProblem{
      fmt::format("{} has no {} implementation", row->name, to_string(settings.implementation)),
      fmt::format("{} has {}", row->source, fmt::join(words, ", "))};
}

std::string optimizer_text(const OptimizerSettings& settings) {
  const OptimizerRow* row = find_optimizer(settings.name);
  std::string text = settings.name;
  const auto has = [&](std::string_view name) {
    return row != nullptr && find_named(row->settings, name) != nullptr;
  };
  std::string_view joint = " with ";
  const auto add = [&](std::string_view what) {
    text += fmt::format("{}{}", joint, what);
    joint = " and ";
  };
  if (settings.centered && has("centered")) text = "centered " + text;
  if (settings.momentum > 0 && has("momentum")) {
    add(settings.nesterov ? "Nesterov momentum" : "momentum");
  }
  if (settings.amsgrad && has("amsgrad")) add("amsgrad");
  if (settings.implementation != OptimizerImplementation::usual) {
    text += fmt::format(", {}", to_string(settings.implementation));
  }
  return text;
}

}  // namespace stowage
