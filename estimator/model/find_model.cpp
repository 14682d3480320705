#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "estimator/model/load_model.hpp"
#include "estimator/model/yaml_document.hpp"

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

Result<SourceTextPtr> find_model(const std::string& argument, const std::string& directory) {
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
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  std::string hint = did_you_mean(argument, candidates);
  if (hint.empty()) hint = "a model is a file, '-' or one that 'stowage models' lists";
  return failure(fmt::format("there is no model '{}'", argument), std::move(hint));
}

}  // namespace stowage
