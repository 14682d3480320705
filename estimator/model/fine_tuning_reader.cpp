#include "estimator/model/fine_tuning_reader.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>

namespace stowage {

namespace {

constexpr std::array<std::string_view, 7> fine_tuning_key_names{"lora",
                                                                "base",
                                                                "checkpoint",
                                                                "layer_dtype",
                                                                "chunked_loss",
                                                                "offload_activations",
                                                                "optimizer_in_backward"};

/// The text of a key.
std::optional<std::string>& text_of_key(FineTuningTexts& texts, std::string_view key) {
  if (key == "lora") return texts.lora;
  if (key == "base") return texts.base;
  if (key == "checkpoint") return texts.checkpoint;
  if (key == "layer_dtype") return texts.layer_dtype;
  if (key == "chunked_loss") return texts.chunked_loss;
  if (key == "offload_activations") return texts.offload_activations;
  return texts.optimizer_in_backward;
}

/// "q_proj+v_proj" of a list, the text of a scalar.
std::optional<std::string> written_names(const YamlNode& node) {
  if (node.is_scalar()) return node.text;
  if (!node.is_sequence()) return std::nullopt;
  std::string names;
  for (const YamlNode* item : node.items) {
    if (!item->is_scalar()) return std::nullopt;
    if (!names.empty()) names += '+';
    names += item->text;
  }
  return names;
}

/// The setting as one line of text. Null: it has another form, which has been reported.
std::optional<std::string> fine_tuning_text(std::string_view key, const YamlNode& value,
                                            Mistakes& mistakes) {
  if (value.is_scalar()) return value.text;
  if (!value.is_mapping()) {
    mistakes.error(value.mark, fmt::format("'{}' takes settings, not {}", key, describe(value)));
    return std::nullopt;
  }
  std::string text;
  for (std::size_t i = 0; i < value.entry_count(); ++i) {
    const auto names = written_names(value.value(i));
    if (!names || !value.key(i).is_scalar()) {
      mistakes.error(value.value(i).mark,
                     fmt::format("'{}' of '{}' takes a word or a list of words, not {}",
                                 value.key(i).text, key, describe(value.value(i))));
      return std::nullopt;
    }
    if (!text.empty()) text += ',';
    // `base: {format: nf4}` has its format as a word alone.
    const bool alone = key == "base" && value.key(i).text == "format";
    text = alone ? (text.empty() ? *names : fmt::format("{},{}", *names, text))
                 : fmt::format("{}{}={}", text, value.key(i).text, *names);
  }
  return text;
}

}  // namespace

std::span<const std::string_view> fine_tuning_keys() { return fine_tuning_key_names; }

void read_fine_tuning_key(std::string_view key, const YamlNode& value, FineTuning& settings,
                          Mistakes& mistakes) {
  std::optional<std::string> text = fine_tuning_text(key, value, mistakes);
  if (!text) return;
  FineTuningTexts texts;
  if (key == "checkpoint" || key == "offload_activations") {
    if (*text == "false") return;
    if (*text == "true") text = "all";
  }
  text_of_key(texts, key) = std::move(text);
  const auto read = read_fine_tuning(texts, settings);
  if (read) return;
  for (const Diagnostic& mistake : read.error()) {
    mistakes.error(value.mark, mistake.message, mistake.hint);
  }
}

}  // namespace stowage
