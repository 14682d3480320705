#include "estimator/huggingface/adapter_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "estimator/base/cure.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/huggingface/import_config.hpp"
#include "estimator/huggingface/local_cache.hpp"
#include "estimator/huggingface/model_type.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

/// A scalar that may stand in a command as it is; empty: none.
std::string plain_scalar(const YamlNode& root, std::string_view key) {
  const YamlNode* node = root.find(key);
  return node != nullptr && node->is_scalar() && is_plain_word(node->text) ? node->text
                                                                           : std::string();
}

/// "q_proj+v_proj"; empty: the file leaves them to peft, or has a regular expression.
std::string target_list(const YamlNode& root) {
  const YamlNode* node = root.find("target_modules");
  if (node == nullptr) return {};
  if (node->is_scalar()) return node->text == "all-linear" ? node->text : std::string();
  if (!node->is_sequence()) return {};
  std::vector<std::string> names;
  for (const auto& item : node->items) {
    if (!item->is_scalar() || !is_plain_word(item->text)) return {};
    names.push_back(item->text);
  }
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, "+"));
}

/// "r=16,alpha=32,dropout=0.05,targets=q_proj+v_proj"
std::string lora_settings(const YamlNode& root) {
  std::string settings;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (value.empty()) return;
    settings += fmt::format("{}{}={}", settings.empty() ? "" : ",", name, value);
  };
  add("r", plain_scalar(root, "r"));
  add("alpha", plain_scalar(root, "lora_alpha"));
  if (const std::string rate = plain_scalar(root, "lora_dropout"); rate != "0" && rate != "0.0") {
    add("dropout", rate);
  }
  if (plain_scalar(root, "use_rslora") == "true") add("use_rslora", "true");
  const std::string targets = target_list(root);
  add("targets", targets.empty() ? "NAME+NAME" : targets);
  return settings;
}

/// The model that the adapters belong to, as the command line takes it; empty: not said.
std::string adapted_model(const YamlNode& root) {
  const std::string name = plain_scalar(root, "base_model_name_or_path");
  std::error_code code;
  const bool is_path = name.starts_with('/') || name.starts_with('.') || fs::exists(name, code);
  return name.empty() || is_path ? name : fmt::format("{}{}", cache_prefix, name);
}

Result<SourceTextPtr> adapter_text(const FileHead& file_head) {
  if (file_head.text) return file_head.text;
  const fs::path path = file_head.is_folder ? fs::path(file_head.argument) / adapter_file_name
                                            : fs::path(file_head.argument);
  return read_source(path.string(), FileKind::description,
                     file_head.is_folder ? FileTypes::regular : FileTypes::any);
}

}  // namespace

bool is_adapter_config(const FileHead& file_head) {
  if (file_head.is_folder) {
    std::error_code code;
    const fs::path folder(file_head.argument);
    return fs::is_regular_file(folder / adapter_file_name, code) &&
           !fs::exists(folder / "config.json", code);
  }
  return is_json_mapping_with(file_head.first_bytes, "\"peft_type\"");
}

Result<ImportedModel> refuse_adapter_config(const FileHead& file_head, const ImportOptions&) {
  const auto text = adapter_text(file_head);
  if (!text) return tl::unexpected(text.error());
  const auto document = read_yaml(*text);
  if (!document) return tl::unexpected(document.error());
  const YamlNode& root = *document->root;
  if (!root.is_mapping()) {
    return failure(fmt::format("'{}' holds adapters, and no network", file_head.argument));
  }
  const std::string kind = plain_scalar(root, "peft_type"), model = adapted_model(root);
  const std::string message =
      fmt::format("'{}' holds adapters{}, and no network", file_head.argument,
                  kind.empty() ? std::string() : fmt::format(" of peft's kind {}", kind));
  const std::string base = fmt::format("name the model that they belong to{}",
                                       model.empty() ? std::string() : fmt::format(", {}", model));
  if (kind != "LORA") return failure(message, base);
  return failure(message,
                 fmt::format("{}, and {} {}", base, in_words(Cure::adapters), lora_settings(root)));
}

}  // namespace stowage
