#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "estimator/base/name_match.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/model/variant.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

/// A file that a user typed the path of.
Result<SourceTextPtr> read_description(const fs::path& path) {
  return read_source(path.string(), FileKind::model);
}

/// A file of the catalogue, found by a name.
Result<SourceTextPtr> read_listed(const fs::path& path) {
  return read_source(path.string(), FileKind::description, FileTypes::regular);
}

// The model that a folded name means by the file of aliases; "": it has no such alias, or does not
// exist.
Result<std::string> meaning_of(const std::string& folded, const std::string& directory) {
  const fs::path path = fs::path(directory).parent_path() / "model-aliases.yaml";
  std::error_code code;
  if (!fs::exists(path, code)) return std::string();
  const auto source = read_listed(path);
  if (!source) return tl::unexpected(source.error());
  const auto document = read_yaml(*source);
  if (!document) return tl::unexpected(document.error());
  const YamlNode& root = *document->root;
  for (std::size_t i = 0; root.is_mapping() && i < root.entry_count(); ++i) {
    if (folded_name(root.key(i).text) == folded) return folded_name(root.value(i).text);
  }
  return std::string();
}

// Finds a shipped model by its name in any spelling, by an alias, or by the unique beginning of its
// name.
Result<std::string> shipped_name(const std::string& argument, const std::string& directory) {
  const std::vector<std::string> names = model_names(directory);
  const std::string folded = folded_name(argument);
  const auto meaning = meaning_of(folded, directory);
  if (!meaning) return tl::unexpected(meaning.error());
  std::vector<std::string> begun;
  for (const std::string& name : names) {
    const std::string candidate = folded_name(name);
    if (candidate == folded || candidate == *meaning) return name;
    if (!folded.empty() && candidate.starts_with(folded)) begun.push_back(name);
  }
  if (begun.size() == 1) return begun.front();
  const std::string message = fmt::format("there is no model '{}'", argument);
  if (begun.size() > 1) {
    return failure(message, fmt::format("there are {}", fmt::join(begun, ", ")));
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  std::string hint = did_you_mean(argument, candidates);
  if (hint.empty()) hint = "a model is a file, '-' or one that 'stowage models' lists";
  return failure(message, std::move(hint));
}

bool is_path(const std::string& argument) {
  return argument.find('/') != std::string::npos || argument.ends_with(".yaml");
}

Result<SourceTextPtr> find_shipped(const std::string& name, const std::string& directory) {
  std::error_code code;
  const fs::path shipped = fs::path(directory) / (name + ".yaml");
  if (fs::exists(shipped, code)) return read_listed(shipped);
  const auto shipped_as = shipped_name(name, directory);
  if (!shipped_as) return tl::unexpected(shipped_as.error());
  return read_listed(fs::path(directory) / (*shipped_as + ".yaml"));
}

Result<SourceTextPtr> find_text(const std::string& argument, const std::string& directory) {
  if (argument == "-") return read_description(argument);
  if (argument.empty()) return failure("the model's name is empty");
  std::error_code code;
  if (fs::exists(argument, code) && !fs::is_directory(argument, code)) {
    return read_description(argument);
  }
  if (!is_path(argument)) return find_shipped(argument, directory);
  if (fs::is_directory(argument, code)) {
    return failure(fmt::format("'{}' is a folder", argument));
  }
  return failure(fmt::format("there is no file '{}'", argument));
}

/// Whether `file` lies in `folder` or below it; `..` and links are followed first.
bool lies_in(const fs::path& file, const fs::path& folder) {
  std::error_code code;
  const fs::path relative =
      fs::weakly_canonical(file, code).lexically_relative(fs::weakly_canonical(folder, code));
  return !code && !relative.empty() && *relative.begin() != "..";
}

/// A description from someone else must not reveal other files of this machine: a base file must be
/// in the folder of the description that names it, and messages say nothing about other files.
Result<SourceTextPtr> find_base_file(const std::string& base, const std::string& variant_file) {
  if (variant_file == "-") {
    return failure("a description from stdin cannot be based on a file",
                   "its base is one that 'stowage models' lists");
  }
  fs::path folder = fs::path(variant_file).parent_path();
  if (folder.empty()) folder = ".";
  const fs::path file = fs::path(variant_file).parent_path() / base;
  if (!lies_in(file, folder)) {
    return failure(fmt::format("the base '{}' is not in the folder of this description", base),
                   "a base is one that 'stowage models' lists, or a file beside the description");
  }
  std::error_code code;
  if (!fs::exists(file, code)) return failure(fmt::format("there is no file '{}'", file.string()));
  return read_source(file.string(), FileKind::description, FileTypes::regular);
}

Result<SourceTextPtr> find_base(const Variant& variant, const std::string& variant_file,
                                const std::string& directory) {
  Result<SourceTextPtr> found = [&]() -> Result<SourceTextPtr> {
    if (variant.base == "-") return failure("a base cannot be '-'");
    if (is_path(variant.base)) return find_base_file(variant.base, variant_file);
    return find_shipped(variant.base, directory);
  }();
  if (!found) found.error().front().span = variant.base_span;
  return found;
}

}  // namespace

std::vector<std::string> model_names(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator at(directory, code), end; !code && at != end; at.increment(code)) {
    if (at->path().extension() == ".yaml") names.push_back(at->path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

ModelOptions overridden(ModelOptions variant, const ModelOptions& command_line) {
  if (command_line.seq) variant.seq = command_line.seq;
  if (command_line.precision) variant.precision = command_line.precision;
  const auto take = [](std::optional<std::string>& into, const std::optional<std::string>& from) {
    if (from) into = from;
  };
  take(variant.fine_tuning.lora, command_line.fine_tuning.lora);
  take(variant.fine_tuning.base, command_line.fine_tuning.base);
  take(variant.fine_tuning.checkpoint, command_line.fine_tuning.checkpoint);
  take(variant.fine_tuning.layer_dtype, command_line.fine_tuning.layer_dtype);
  take(variant.fine_tuning.chunked_loss, command_line.fine_tuning.chunked_loss);
  take(variant.fine_tuning.offload_activations, command_line.fine_tuning.offload_activations);
  take(variant.fine_tuning.optimizer_in_backward, command_line.fine_tuning.optimizer_in_backward);
  for (const auto& [name, value] : command_line.arguments) {
    variant.arguments[name] = value;
    variant.places.erase(name);
  }
  return variant;
}

Result<FoundModel> find_model(const std::string& argument, const std::string& directory) {
  auto source = find_text(argument, directory);
  if (!source) return tl::unexpected(std::move(source.error()));
  FoundModel found{.source = *std::move(source)};
  for (int length = 0; may_be_variant(*found.source); ++length) {
    auto variant = read_variant(found.source);
    if (!variant) return tl::unexpected(std::move(variant.error()));
    if (length == longest_variant_chain) {
      return failure(Diagnostic{
          .message =
              fmt::format("more than {} descriptions based on one another", longest_variant_chain),
          .span = variant->base_span,
          .hint = "does one of them lead back to itself?"});
    }
    auto base = find_base(*variant, found.source->name, directory);
    if (!base) return tl::unexpected(std::move(base.error()));
    // The options of the outer variant override those of its base.
    ModelOptions options = overridden(variant->options, found.options);
    for (const auto& [name, place] : found.options.places) options.places[name] = place;
    if (!found.options.name.empty()) options.name = found.options.name;
    if (!found.options.source.empty()) options.source = found.options.source;
    found = {.source = *std::move(base), .options = std::move(options)};
  }
  return found;
}

}  // namespace stowage
