#include "estimator/model/step_settings_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>

namespace stowage {

namespace {

constexpr std::array<std::string_view, 6> keys{"precision", "accumulation", "zero_grad",
                                               "augment",   "prefetch",     "layout"};
constexpr std::int64_t most_micro_batches = 1'000'000;
constexpr std::int64_t most_copies = 1'000;

// One of the words, by its number. They are compared as written: `amp-bf16` is no difference.
std::optional<std::size_t> read_word(std::string_view key, const YamlNode& value,
                                     std::span<const std::string_view> words, Mistakes& mistakes) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (value.is_scalar() && value.text == words[i]) return i;
  }
  std::string hint = value.is_scalar() ? did_you_mean(value.text, words) : std::string();
  if (hint.empty()) hint = fmt::format("it is one of {}", fmt::join(words, ", "));
  mistakes.error(value.mark,
                 value.is_scalar() ? fmt::format("unknown {} '{}'", key, value.text.substr(0, 60))
                                   : fmt::format("'{}' takes a word, not {}", key, describe(value)),
                 std::move(hint));
  return std::nullopt;
}

std::optional<int> read_count(std::string_view key, const YamlNode& node, std::int64_t minimum,
                              std::int64_t maximum, const ModelDescription& model,
                              Mistakes& mistakes) {
  const ValueRules rules{
      .names = {.model = model.value_names, .has_batch = false, .has_index = false}};
  const auto written = read_value(node, key, rules, mistakes);
  const auto value = written ? evaluate(*written, {.model = model.values}, mistakes) : std::nullopt;
  const auto count =
      value ? to_integer(key, minimum, maximum, *value, node.mark, mistakes) : std::nullopt;
  if (!count) return std::nullopt;
  return static_cast<int>(*count);
}

}  // namespace

std::span<const std::string_view> step_setting_keys() { return keys; }

void read_step_setting(std::string_view key, const YamlNode& value, const ModelDescription& model,
                       TrainSettings& train, Mistakes& mistakes) {
  if (key == "precision") {
    const auto chosen = read_word(key, value, precision_names(), mistakes);
    if (chosen) train.precision = static_cast<Precision>(*chosen);
  } else if (key == "zero_grad") {
    constexpr std::array<std::string_view, 2> words{"to_none", "to_zero"};
    const auto chosen = read_word(key, value, words, mistakes);
    if (chosen) train.step.zero_grad = static_cast<ZeroGrad>(*chosen);
  } else if (key == "layout") {
    const auto chosen = read_word(key, value, layout_names, mistakes);
    if (chosen) train.step.layout = static_cast<TensorLayout>(*chosen);
  } else if (key == "accumulation") {
    const auto count = read_count(key, value, 1, most_micro_batches, model, mistakes);
    train.accumulation = count.value_or(train.accumulation);
  } else {
    int& copies = key == "augment" ? train.step.augment : train.step.prefetch;
    copies = read_count(key, value, 0, most_copies, model, mistakes).value_or(copies);
  }
}

}  // namespace stowage
