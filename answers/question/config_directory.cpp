#include "answers/question/config_directory.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "answers/question/question_error.hpp"

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
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path installed = (program / ".." / "share" / "stowage" / "configs").lexically_normal();
  for (const fs::path& candidate : {program / "configs", installed}) {
    if (fs::is_directory(candidate, ignored)) return ConfigDirectory{candidate.string()};
  }
  return failure(fmt::format("no configs beside {}", program.string()),
                 "name the folder with `configs` DIR or STOWAGE_CONFIGS");
}

}  // namespace stowage
