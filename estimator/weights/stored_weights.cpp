#include "estimator/weights/stored_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "estimator/base/read_source.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view index_name = "model.safetensors.index.json";

/// Names of the folder's files with that ending, sorted.
std::vector<std::string> files_ending(const fs::path& folder, std::string_view ending) {
  std::vector<std::string> names;
  std::error_code code;
  for (auto entry = fs::directory_iterator(folder, code);
       !code && entry != fs::directory_iterator(); entry.increment(code)) {
    std::error_code ignored;
    std::string name = entry->path().filename().string();
    if (name.ends_with(ending) && entry->is_regular_file(ignored)) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

/// The shards that an index names, in the order of their names.
Result<std::vector<std::string>> indexed_files(const fs::path& index) {
  auto text = read_source(index.string(), FileKind::description, FileTypes::regular);
  if (!text) return tl::unexpected(std::move(text.error()));
  const auto document = read_yaml(*text);
  if (!document) return tl::unexpected(document.error());
  const auto mistake = [&](const YamlNode& at, std::string message) {
    return failure(Diagnostic{.message = std::move(message), .span = span_of(*text, at.mark)});
  };
  const YamlNode* map = document->root->find("weight_map");
  if (map == nullptr || !map->is_mapping()) {
    return mistake(*document->root, "an index of safetensors files has a mapping 'weight_map'");
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < map->entry_count(); ++i) {
    const YamlNode& file = map->value(i);
    if (!file.is_scalar() || file.text.empty() || file.text.find('/') != std::string::npos ||
        file.text.find('\\') != std::string::npos || file.text.front() == '.') {
      return mistake(file,
                     fmt::format("{} is not the name of a file beside the index", describe(file)));
    }
    names.insert(file.text);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace

std::vector<FormatTotal> format_totals(const StoredWeights& weights) {
  std::map<std::string, FormatTotal> totals;
  for (const StoredTensor& tensor : weights.tensors) {
    FormatTotal& total = totals[tensor.format];
    total.format = tensor.format;
    total.tensors += 1;
    std::int64_t elements = 1;
    for (const std::int64_t dimension : tensor.shape) elements *= dimension;
    total.elements += elements;
    total.bytes += tensor.bytes;
  }
  std::vector<FormatTotal> sorted;
  sorted.reserve(totals.size());
  for (auto& [format, total] : totals) sorted.push_back(std::move(total));
  std::ranges::stable_sort(sorted, [](const FormatTotal& a, const FormatTotal& b) {
    return a.bytes.count() > b.bytes.count();
  });
  return sorted;
}

bool has_weights(const fs::path& folder) {
  return !files_ending(folder, ".safetensors").empty() || !files_ending(folder, ".gguf").empty();
}

Result<StoredWeights> read_weight_folder(const fs::path& folder) {
  std::error_code code;
  std::vector<std::string> names = files_ending(folder, ".safetensors");
  bool gguf = false;
  if (fs::is_regular_file(folder / index_name, code)) {
    auto indexed = indexed_files(folder / index_name);
    if (!indexed) return tl::unexpected(std::move(indexed.error()));
    names = *std::move(indexed);
  } else if (names.empty()) {
    names = files_ending(folder, ".gguf");
    gguf = true;
  }
  if (names.empty()) {
    return failure(fmt::format("'{}' holds no safetensors or GGUF files", folder.string()));
  }
  StoredWeights all{.kind = gguf ? "GGUF" : "safetensors"};
  for (const std::string& name : names) {
    auto one = gguf ? read_gguf(folder / name) : read_safetensors(folder / name);
    if (!one) return tl::unexpected(std::move(one.error()));
    all.files.push_back(name);
    if (all.stated.empty()) all.stated = std::move(one->stated);
    std::ranges::move(one->tensors, std::back_inserter(all.tensors));
  }
  return all;
}

Result<StoredWeights> read_weights(const fs::path& path) {
  std::error_code code;
  if (fs::is_directory(path, code)) return read_weight_folder(path);
  return path.extension() == ".gguf" ? read_gguf(path) : read_safetensors(path);
}

}  // namespace stowage
