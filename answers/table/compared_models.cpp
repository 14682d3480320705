#include "answers/table/compared_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "answers/question/question_error.hpp"
#include "answers/subject/way_in.hpp"
#include "estimator/huggingface/adapter_config.hpp"
#include "estimator/weights/stored_weights.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

/// Whether the folder is one model, or adapters of one: what transformers and peft save.
bool has_configuration(const fs::path& folder) {
  std::error_code code;
  return std::ranges::any_of(std::array{"config.json", adapter_file_name},
                             [&](const char* name) { return fs::exists(folder / name, code); });
}

bool is_model_in_folder(const fs::directory_entry& entry) {
  constexpr std::array<std::string_view, 4> endings{".yaml", ".yml", ".json", ".onnx"};
  const std::string name = entry.path().filename().string();
  if (name.starts_with('.')) return false;
  std::error_code code;
  if (entry.is_directory(code)) return has_configuration(entry.path());
  return entry.is_regular_file(code) &&
         std::ranges::find(endings, entry.path().extension().string()) != endings.end();
}

Result<std::vector<std::string>> models_in(const std::string& folder) {
  std::vector<std::string> models;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    if (is_model_in_folder(*at)) models.push_back(at->path().string());
  }
  if (code) {
    return failure(question_error(fmt::format("cannot read '{}': {}", folder, code.message())));
  }
  if (models.empty() && has_weights(folder)) {
    return failure(question_error(
        fmt::format("the folder '{}' has weights, and no config.json that says of what network",
                    folder),
        "`stowage summary` prints what is in them"));
  }
  if (models.empty()) {
    if (auto mistake = foreign_folder(folder)) return failure(*std::move(mistake));
    return failure(question_error(fmt::format("the folder '{}' has no model", folder),
                                  "models in a folder end in .yaml, .yml, .json or .onnx, or "
                                  "are folders with a config.json"));
  }
  std::ranges::sort(models);
  return models;
}

}  // namespace

bool is_model_folder(const std::string& source, const std::string& directory) {
  std::error_code code;
  return fs::is_directory(source, code) && !has_configuration(source) &&
         !fs::exists(fs::path(directory) / (source + ".yaml"), code);
}

Result<std::vector<std::string>> models_named(const std::vector<std::string>& sources,
                                              const std::string& directory) {
  if (std::ranges::count(sources, "-") > 1) {
    return failure(question_error("only one model can come from stdin"));
  }
  std::vector<std::string> models;
  for (const std::string& source : sources) {
    if (!is_model_folder(source, directory)) {
      models.push_back(source);
      continue;
    }
    auto inside = models_in(source);
    if (!inside) return tl::unexpected(std::move(inside.error()));
    models.insert(models.end(), inside->begin(), inside->end());
  }
  return models;
}

}  // namespace stowage
