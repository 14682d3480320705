#include "estimator/huggingface/model_type.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "estimator/huggingface/families.hpp"
#include "estimator/huggingface/local_cache.hpp"

namespace stowage {

namespace {

/// The name after "transformers:" in the command, quoted for a shell: the configuration's path.
std::string recorded_name(const std::string& argument) {
  std::string name = argument;
  if (name.starts_with(cache_prefix)) {
    name = name.substr(cache_prefix.size());
    name = name.substr(0, name.find('@'));
  }
  if (name == "-" || !(is_plain_word(name))) return "FOLDER";
  return name;
}

/// The model type of a nested configuration; empty: it has none.
std::string inner_type(const YamlNode& root, std::string_view key) {
  const YamlNode* inner = root.find(key);
  if (inner == nullptr || !inner->is_mapping()) return {};
  const YamlNode* type = inner->find("model_type");
  return type != nullptr && type->is_scalar() ? type->text : std::string();
}

/// "text_config 'llama', vision_config 'siglip_vision_model'"; empty: it is one model.
std::string joined_models(const YamlNode& root) {
  std::string text;
  for (const std::string_view key :
       {"text_config", "vision_config", "audio_config", "encoder", "decoder"}) {
    const YamlNode* inner = root.find(key);
    if (inner == nullptr || !inner->is_mapping()) continue;
    const std::string type = inner_type(root, key);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", key);
    if (!type.empty()) text += fmt::format(" '{}'", type);
  }
  return text;
}

std::string hint_for(const YamlNode& root, const std::string& type, const std::string& argument) {
  std::vector<std::string_view> known;
  for (const Family& family : families()) known.push_back(family.type);
  std::string record = fmt::format(
      "`python -m stowage record transformers:{} -o step.json` records any that transformers has",
      recorded_name(argument));
  if (!joined_models(root).empty()) {
    std::string language = inner_type(root, "text_config");
    if (language.empty() && type == "gemma3") language = "gemma3_text";
    if (find_family(language) == nullptr) return record;
    return fmt::format("its text_config alone, with \"model_type\": \"{}\", is; {}", language,
                       record);
  }
  if (type == "gemma3") {
    return fmt::format("its text_config alone, with \"model_type\": \"gemma3_text\", is; {}",
                       record);
  }
  std::string hint = did_you_mean(type, known);
  if (hint.empty()) hint = fmt::format("read are {}", fmt::join(known, ", "));
  return fmt::format("{}; {}", hint, record);
}

}  // namespace

bool is_plain_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./+=@%,").find(c) != std::string_view::npos;
  });
}

std::string read_model_type(const YamlNode& root, const std::string& argument, Mistakes& mistakes) {
  const YamlNode* type = root.find("model_type");
  if (type == nullptr) {
    mistakes.error(root.mark, "there is no 'model_type': this is no configuration of transformers",
                   "a config.json that save_pretrained writes has one");
    return {};
  }
  if (!type->is_scalar() || !type->quoted) {
    mistakes.error(type->mark, fmt::format("'model_type' must be a text, not {}", describe(*type)));
    return {};
  }
  if (find_family(type->text) != nullptr) return type->text;
  const std::string joined = joined_models(root);
  mistakes.error(
      type->mark,
      fmt::format(
          "model type '{}' {}is not one of those that are read", type->text,
          joined.empty() ? std::string() : fmt::format("joins several models ({}) and ", joined)),
      hint_for(root, type->text, argument));
  return {};
}

}  // namespace stowage
