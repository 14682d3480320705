#include "estimator/huggingface/quantised_weights.hpp"

#include <fmt/format.h>

#include <string>

#include "estimator/base/cure.hpp"

namespace stowage {

namespace {

std::string scalar_at(const YamlNode& mapping, std::string_view key) {
  const YamlNode* node = mapping.find(key);
  return node != nullptr && node->is_scalar() ? node->text : std::string();
}

bool is_true(const YamlNode& mapping, std::string_view key) {
  const YamlNode* node = mapping.find(key);
  return node != nullptr && node->is_scalar() && !node->quoted && node->text == "true";
}

/// The setting `base` for a BitsAndBytesConfig, whose defaults are fp4 without double quantisation.
std::string bitsandbytes_base(const YamlNode& config) {
  if (is_true(config, "load_in_8bit") || is_true(config, "_load_in_8bit")) return "int8";
  if (!is_true(config, "load_in_4bit") && !is_true(config, "_load_in_4bit")) return {};
  const std::string kind = scalar_at(config, "bnb_4bit_quant_type");
  const bool twice = is_true(config, "bnb_4bit_use_double_quant");
  return fmt::format("{}{}", kind == "nf4" ? "nf4" : "fp4", twice ? "" : ",double_quant=false");
}

/// "'gptq', 4 bits"
std::string quantisation_words(const std::string& method, const YamlNode& config) {
  std::string words = method.empty() ? std::string() : fmt::format("'{}'", method);
  for (const std::string_view key : {"bits", "w_bit"}) {
    const std::string bits = scalar_at(config, key);
    if (bits.empty()) continue;
    words += fmt::format("{}{} bits", words.empty() ? "" : ", ", bits);
    break;
  }
  return words;
}

constexpr std::string_view hint_end = " for the layout of these weights";

}  // namespace

void warn_of_quantised_weights(ConfigReader& config) {
  const YamlNode* quantised = config.written("quantization_config");
  if (quantised == nullptr || !quantised->is_mapping()) return;
  std::string method = scalar_at(*quantised, "quant_method");
  const std::string base =
      method.empty() || method == "bitsandbytes" ? bitsandbytes_base(*quantised) : std::string();
  if (method.empty() && !base.empty()) method = "bitsandbytes";
  const std::string words = quantisation_words(method, *quantised);
  config.warn("quantization_config",
              fmt::format("the weights on disk are quantised{}; the network is read as it was "
                          "before that",
                          words.empty() ? std::string() : fmt::format(" ({})", words)),
              base.empty()
                  ? std::string()
                  : fmt::format("{} {}{}", in_words(Cure::quantised_base), base, hint_end));
}

bool answers_quantisation(const BaseSettings& base, const Diagnostic& warning) {
  std::string_view hint = warning.hint;
  const std::string_view words = in_words(Cure::quantised_base);
  if (!hint.starts_with(words) || !hint.ends_with(hint_end)) return false;
  hint.remove_prefix(words.size());
  hint.remove_suffix(hint_end.size());
  while (hint.starts_with(' ')) hint.remove_prefix(1);
  const auto wanted = parse_base(hint);
  if (!wanted || wanted->format != base.format) return false;
  const bool has_blocks = base.format == BaseFormat::nf4 || base.format == BaseFormat::fp4;
  return !has_blocks || wanted->double_quantised == base.double_quantised;
}

}  // namespace stowage
