#include "estimator/keras/training_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace stowage {

namespace {

std::string lower_letters(std::string_view text) {
  std::string word;
  for (const char c : text) {
    if (c != '_' && c != ' ')
      word.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return word;
}

std::optional<std::string> row_of_loss(std::string_view loss) {
  const std::string word = lower_letters(loss);
  if (word == "sparsecategoricalcrossentropy" || word == "categoricalcrossentropy") {
    return "cross_entropy";
  }
  if (word == "binarycrossentropy") return "bce";
  if (word == "mse" || word == "meansquarederror") return "mse";
  if (word == "mae" || word == "meanabsoluteerror") return "l1";
  if (word == "kld" || word == "kldivergence" || word == "kullbackleiblerdivergence")
    return "kl_div";
  return std::nullopt;
}

struct OptimizerWord {
  std::string_view keras;
  std::string_view row;
};
constexpr std::array optimizer_words{
    OptimizerWord{"sgd", "sgd"},
    OptimizerWord{"adam", "adam"},
    OptimizerWord{"adamw", "adamw"},
    OptimizerWord{"adagrad", "adagrad"},
    OptimizerWord{"rmsprop", "rmsprop"},
    OptimizerWord{"adadelta", "adadelta"},
    OptimizerWord{"adamax", "adamax"},
    OptimizerWord{"nadam", "nadam"},
    OptimizerWord{"adafactor", "adafactor"},
    OptimizerWord{"lion", "lion"},
    OptimizerWord{"lamb", "lamb"},
};

struct SettingWord {
  std::string_view row;  ///< "": of every optimizer
  std::string_view keras;
  std::string_view setting;
};
constexpr std::array setting_words{
    SettingWord{"sgd", "momentum", "momentum"}, SettingWord{"rmsprop", "momentum", "momentum"},
    SettingWord{"rmsprop", "rho", "smoothing"}, SettingWord{"adam", "beta_1", "beta1"},
    SettingWord{"adam", "beta_2", "beta2"},     SettingWord{"adam", "epsilon", "epsilon"},
    SettingWord{"adamw", "beta_1", "beta1"},    SettingWord{"adamw", "beta_2", "beta2"},
};
constexpr std::array flag_words{
    SettingWord{"sgd", "nesterov", "nesterov"},
    SettingWord{"adam", "amsgrad", "amsgrad"},
    SettingWord{"adamw", "amsgrad", "amsgrad"},
    SettingWord{"rmsprop", "centered", "centered"},
};

// The first of several losses, one for each output.
std::string first_loss(const KerasConfig& config) {
  const YamlNode* node = config.find("loss");
  if (node != nullptr && node->is_sequence() && !node->items.empty()) node = node->items[0];
  if (node != nullptr && node->is_mapping() && node->entry_count() > 0 &&
      node->find("class_name") == nullptr) {
    node = &node->value(0);
  }
  if (node == nullptr) return {};
  return node->is_scalar() ? node->text : KerasConfig(node).text("class_name");
}

void read_optimizer(const KerasConfig& optimizer, const std::string& word,
                    KerasTraining& training) {
  const auto known = std::ranges::find(optimizer_words, lower_letters(word), &OptimizerWord::keras);
  if (known == optimizer_words.end()) {
    training.notes.push_back(
        {.severity = Severity::note,
         .message = fmt::format("the file's optimizer '{}' is not known here", word)});
    return;
  }
  training.train.emplace_back("optimizer", std::string(known->row));
  const KerasConfig config = optimizer.at("config");
  if (const auto rate = config.number("learning_rate"); rate && *rate > 0) {
    training.train.emplace_back("learning_rate", fmt::format("{}", *rate));
  }
  for (const SettingWord& setting : setting_words) {
    const auto value = config.number(setting.keras);
    if (setting.row != known->row || !value || *value < 0) continue;
    training.train.emplace_back(setting.setting, fmt::format("{}", *value));
  }
  for (const SettingWord& setting : flag_words) {
    if (setting.row == known->row && config.flag(setting.keras, false)) {
      training.train.emplace_back(setting.setting, "true");
    }
  }
}

}  // namespace

KerasTraining read_training_config(const KerasConfig& model) {
  KerasTraining training;
  KerasConfig config = model.at("compile_config");
  if (config.node() == nullptr) config = model.at("training_config");
  if (config.node() == nullptr) return training;
  const YamlNode* optimizer = config.find("optimizer");
  if (optimizer == nullptr) optimizer = config.find("optimizer_config");
  if (optimizer != nullptr) {
    const KerasConfig object(optimizer);
    read_optimizer(object, optimizer->is_scalar() ? optimizer->text : object.text("class_name"),
                   training);
  }
  const std::string loss = first_loss(config);
  training.loss = row_of_loss(loss);
  if (!loss.empty() && !training.loss) {
    training.notes.push_back(
        {.severity = Severity::note,
         .message = fmt::format("the file's loss '{}' is not known here", loss)});
  }
  return training;
}

}  // namespace stowage
