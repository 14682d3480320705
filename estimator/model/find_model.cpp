#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

#include "estimator/model/load_model.hpp"
#include "estimator/model/variant.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

// At most a little more than a description may have: enough for the reader to refuse it.
Result<SourceTextPtr> read_text(std::istream& stream, const std::string& name) {
  std::string text;
  std::vector<char> chunk(std::size_t{1} << 16);
  while (text.size() <= largest_description && stream) {
    stream.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    text.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) return failure(fmt::format("cannot read '{}'", name));
  return std::make_shared<const SourceText>(SourceText{name, std::move(text)});
}

Result<SourceTextPtr> read_file(const fs::path& path) {
  std::error_code code;
  if (fs::is_directory(path, code)) {
    return failure(fmt::format("'{}' is a directory", path.string()));
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return failure(fmt::format("cannot open '{}'", path.string()));
  return read_text(stream, path.string());
}

// Letters and digits alone, in lower case: what "ResNet_50" and "resnet50" have in common.
std::string folded(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) continue;
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

std::optional<fs::path> shipped_model(const std::string& name, const std::string& directory,
                                      const std::vector<std::string>& names) {
  for (const std::string& candidate : names) {
    if (folded(candidate) == folded(name)) return fs::path(directory) / (candidate + ".yaml");
  }
  return std::nullopt;
}

Result<SourceTextPtr> find_text(const std::string& argument, const std::string& directory) {
  if (argument == "-") return read_text(std::cin, "-");
  if (argument.empty()) return failure("the model's name is empty");
  std::error_code code;
  if (fs::exists(argument, code) && !fs::is_directory(argument, code)) return read_file(argument);
  const bool is_path = argument.find('/') != std::string::npos || argument.ends_with(".yaml");
  if (is_path && fs::is_directory(argument, code)) {
    return failure(fmt::format("'{}' is a folder", argument));
  }
  if (is_path) return failure(fmt::format("there is no file '{}'", argument));
  const fs::path shipped = fs::path(directory) / (argument + ".yaml");
  if (fs::exists(shipped, code)) return read_file(shipped);
  const std::vector<std::string> names = model_names(directory);
  if (const auto path = shipped_model(argument, directory, names)) return read_file(*path);
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  std::string hint = did_you_mean(argument, candidates);
  if (hint.empty()) hint = "a model is a file, '-' or one that 'stowage models' lists";
  return failure(fmt::format("there is no model '{}'", argument), std::move(hint));
}

// A base is a path relative to the file that names it, else a name from the catalogue.
Result<SourceTextPtr> find_base(const Variant& variant, const std::string& variant_file,
                                const std::string& directory) {
  Result<SourceTextPtr> found = [&] {
    std::error_code code;
    const fs::path beside = fs::path(variant_file).parent_path() / variant.base;
    const bool is_path =
        variant.base.find('/') != std::string::npos || variant.base.ends_with(".yaml");
    if (is_path && fs::is_regular_file(beside, code)) return read_file(beside);
    if (variant.base == "-") return Result<SourceTextPtr>(failure("a base cannot be '-'"));
    return find_text(variant.base, directory);
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
    // The outer ones win over what their base says.
    ModelOptions options = overridden(variant->options, found.options);
    for (const auto& [name, place] : found.options.places) options.places[name] = place;
    if (!found.options.name.empty()) options.name = found.options.name;
    if (!found.options.source.empty()) options.source = found.options.source;
    found = {.source = *std::move(base), .options = std::move(options)};
  }
  return found;
}

}  // namespace stowage
