#include "estimator/huggingface/import_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "estimator/base/bytes.hpp"
#include "estimator/base/cure.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/huggingface/families.hpp"
#include "estimator/huggingface/local_cache.hpp"
#include "estimator/huggingface/model_type.hpp"
#include "estimator/huggingface/network.hpp"
#include "estimator/huggingface/stated_settings.hpp"
#include "estimator/text/mistakes.hpp"
#include "estimator/weights/stored_weights.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

struct FoundConfig {
  SourceTextPtr text;
  std::string name;      ///< of the model
  fs::path folder = {};  ///< where weights may lie; empty: a file alone was named
};

/// The model's name: the folder's name, or the file's if it is not called config.json.
std::string name_of(const fs::path& path) {
  if (path.filename() != "config.json") return path.stem().string();
  const std::string folder = fs::absolute(path).parent_path().filename().string();
  return folder.empty() ? "config" : folder;
}

/// Of a folder that was named, its regular file alone.
Result<FoundConfig> read_config_file(const fs::path& path, std::string name, fs::path folder) {
  const FileTypes types = folder.empty() ? FileTypes::any : FileTypes::regular;
  return read_source(path.string(), FileKind::description, types).map([&](SourceTextPtr&& text) {
    return FoundConfig{std::move(text), std::move(name), std::move(folder)};
  });
}

Result<FoundConfig> find_config(const FileHead& file_head) {
  if (file_head.text) return FoundConfig{file_head.text, "config"};
  if (file_head.argument.starts_with(cache_prefix)) {
    const std::string name = file_head.argument.substr(cache_prefix.size());
    auto path = cached_config(name, environment_cache());
    if (!path) return tl::unexpected(std::move(path.error()));
    return read_config_file(*path, name, path->parent_path());
  }
  const fs::path path = file_head.is_folder ? fs::path(file_head.argument) / "config.json"
                                            : fs::path(file_head.argument);
  return read_config_file(path, name_of(path),
                          file_head.is_folder ? fs::path(file_head.argument) : fs::path());
}

/// A note about weights in the configuration's folder; nullopt: there are none.
std::optional<Diagnostic> weights_note(const fs::path& folder) {
  if (folder.empty() || !has_weights(folder)) return std::nullopt;
  const auto weights = read_weight_folder(folder);
  if (!weights) {
    Diagnostic warning = weights.error().front();
    warning.severity = Severity::warning;
    return warning;
  }
  std::string text = "weights on disk:";
  for (const FormatTotal& total : format_totals(*weights)) {
    text += fmt::format("{} {} of {} in {} tensors", text.ends_with(':') ? "" : ",",
                        format_bytes(total.bytes), total.format, total.tensors);
  }
  return Diagnostic{.severity = Severity::note, .message = std::move(text)};
}

Diagnostics errors_of(Diagnostics found) {
  std::erase_if(found, [](const Diagnostic& one) { return one.severity != Severity::error; });
  return found;
}

Result<std::optional<std::int64_t>> asked_pairs(const ImportOptions& options,
                                                std::string_view type) {
  constexpr std::int64_t most_pairs = 1 << 20;
  const auto given = options.values.find("pairs");
  if (type != "clip" || given == options.values.end()) return std::nullopt;
  const std::string& text = given->second;
  std::int64_t pairs = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), pairs);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  if (!whole || pairs < 1 || pairs > most_pairs) {
    return failure(fmt::format("the argument 'pairs' takes a number from 1 to {}, not '{}'",
                               most_pairs, text));
  }
  return pairs;
}

Diagnostic settings_note(const StatedSettings& stated, const Family& family) {
  const std::string version = to_string(stated.version) + stated.version_source;
  std::string text =
      stated.attention.is_paged
          ? fmt::format("the network of transformers {}: a server's own attention{}", version,
                        family.has_sinks ? " where there is a paged cache" : "")
          : fmt::format("as transformers {} runs it{}: attention {}", to_string(stated.version),
                        stated.version_source, stated.attention.words);
  if (family.has_heads) text += fmt::format(", head '{}'", to_string(stated.head));
  if (!stated.precision.empty() && stated.precision != "fp32") {
    text += fmt::format(", precision {} unless another is asked for", stated.precision);
  }
  if (!stated.unused_precision.empty()) {
    text += fmt::format(
        ", precision fp32 unless another is asked for, in which versions before 5 load {} weights",
        stated.unused_precision);
  }
  return {.severity = Severity::note,
          .message = std::move(text),
          .hint = stated.is_version_asked ? "" : hint_of(Cure::library_version)};
}

/// A version outside those whose sources were read is sized as the nearest of them.
std::optional<Diagnostic> version_note(const StatedSettings& stated) {
  const bool is_older = stated.version < oldest_known_version;
  if (!is_older && stated.version <= newest_known_version) return std::nullopt;
  const std::string nearest = to_string(is_older ? oldest_known_version : newest_known_version);
  return Diagnostic{
      .severity = Severity::note,
      .message = fmt::format("transformers {} is {} than {}, the {} whose sources were read: the "
                             "step is sized as {}'s",
                             to_string(stated.version), is_older ? "older" : "newer", nearest,
                             is_older ? "oldest" : "newest", nearest)};
}

/// Keys with which a model keeps and returns more than its result.
void note_further_results(ConfigReader& config, Mistakes& mistakes) {
  for (const std::string_view key :
       {"output_hidden_states", "output_attentions", "output_router_logits"}) {
    const YamlNode* const value = config.written(key);
    if (value == nullptr || !value->is_scalar() || value->text != "true") continue;
    mistakes.add({.severity = Severity::note,
                  .message = fmt::format("`{}`: what the model keeps and computes for it is not "
                                         "counted",
                                         key)});
  }
}

/// gpt-oss' experts before transformers 5.0, unless kernels for packed ones run (the wheel
/// of 4.57).
std::optional<Diagnostic> old_experts_note(const StatedSettings& stated, std::string_view type) {
  if (type != "gpt_oss" || stated.version >= LibraryVersion{5, 0}) return std::nullopt;
  if (stated.stored != nullptr || stated.attention.is_paged) return std::nullopt;
  return Diagnostic{.severity = Severity::note,
                    .message =
                        "transformers before 5.0 runs all experts for all tokens in "
                        "inference, and one expert after another in training: both are "
                        "sized in the grouped products of 5.0"};
}

}  // namespace

bool is_json_mapping_with(std::string_view text, std::string_view key) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' &&
         text.find(key) != std::string_view::npos;
}

bool is_hugging_face_model(const FileHead& file_head) {
  if (file_head.argument.starts_with(cache_prefix)) return true;
  if (file_head.is_folder) {
    std::error_code code;
    return fs::is_regular_file(fs::path(file_head.argument) / "config.json", code);
  }
  return is_json_mapping_with(file_head.first_bytes, "\"model_type\"") ||
         is_json_mapping_with(file_head.first_bytes, "\"architectures\"");
}

/// Finds and reads the configuration, its model type and the settings, lets the family's writer
/// fill in the description, and collects the notes.
Result<ImportedModel> import_hugging_face_model(const FileHead& file_head,
                                                const ImportOptions& options) {
  const auto found = find_config(file_head);
  if (!found) return tl::unexpected(found.error());
  const auto document = read_yaml(found->text);
  if (!document) return tl::unexpected(document.error());
  Mistakes mistakes(found->text);
  for (const Diagnostic& mistake : document->mistakes) mistakes.add(mistake);
  const YamlNode& root = *document->root;
  if (!root.is_mapping()) {
    mistakes.error(root.mark, fmt::format("a configuration is a mapping, not {}", describe(root)));
    return tl::unexpected(std::move(mistakes).in_order());
  }
  const std::string type = read_model_type(root, file_head.argument, mistakes);
  if (type.empty()) return tl::unexpected(errors_of(std::move(mistakes).in_order()));
  const Family& family = *find_family(type);
  ConfigReader config(root, type, "", mistakes);
  auto stated = stated_settings(config, family, options);
  if (!stated) return tl::unexpected(std::move(stated.error()));
  DescriptionText text(found->name,
                       fmt::format("transformers {}, {}", stated->class_name,
                                   stated->attention.function == AttentionFunction::eager
                                       ? "eager attention"
                                       : "scaled_dot_product_attention"));
  Network network{config,          text,           stated->head, stated->attention.function,
                  stated->version, stated->labels, std::nullopt, options.loss != "none"};
  auto pairs = asked_pairs(options, type);
  if (!pairs) return tl::unexpected(std::move(pairs.error()));
  network.pairs = *pairs;
  declare_settings(text, *stated, family);
  if (!mistakes.any_errors()) family.write(network);
  note_further_results(config, mistakes);
  config.finish();
  if (mistakes.any_errors()) return tl::unexpected(errors_of(std::move(mistakes).in_order()));
  ImportedModel imported{.takes_values = true, .stored = stated->stored};
  imported.notes = std::move(mistakes).in_order();
  imported.notes.push_back(settings_note(*stated, family));
  if (auto note = version_note(*stated)) imported.notes.push_back(*std::move(note));
  if (auto note = old_experts_note(*stated, type)) imported.notes.push_back(*std::move(note));
  if (network.pairs) {
    imported.notes.push_back(
        {.severity = Severity::note,
         .message = fmt::format("the step is of {} pairs, whatever the batch: its logits grow with "
                                "their square",
                                *network.pairs)});
  }
  if (auto note = weights_note(found->folder)) imported.notes.push_back(*std::move(note));
  imported.description = std::make_shared<const SourceText>(
      SourceText{found->text->name + " (as described)", text.text()});
  return imported;
}

}  // namespace stowage
