#include "answers/question/config_directory.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "answers/question/question_error.hpp"
#include "estimator/base/installation.hpp"

namespace stowage {

namespace fs = std::filesystem;

Result<ConfigDirectory> find_configs(const std::optional<std::string>& named) {
  std::error_code ignored;
  if (named) {
    if (fs::is_directory(*named, ignored)) return ConfigDirectory{*named};
    return failure(question_error(fmt::format("`configs`: '{}' is not a folder", *named)));
  }
  const char* variable = std::getenv("STOWAGE_CONFIGS");
  if (variable != nullptr && *variable != '\0') {
    if (fs::is_directory(variable, ignored)) return ConfigDirectory{variable};
    return failure(fmt::format("STOWAGE_CONFIGS is '{}', which is not a folder", variable));
  }
  const std::vector<fs::path> folders = config_folders();
  for (const fs::path& candidate : folders) {
    if (fs::is_directory(candidate, ignored)) return ConfigDirectory{candidate.string()};
  }
  return failure(fmt::format("no configs beside {}", folders.front().parent_path().string()),
                 "name the folder with `configs` DIR or STOWAGE_CONFIGS");
}

}  // namespace stowage
