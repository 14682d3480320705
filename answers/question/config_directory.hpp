// Where configs/ is: as the question names it, else STOWAGE_CONFIGS, else beside the program:
// in the folder of a build tree's binary, or in ../share/stowage of an installed one (which may be
// moved).
#pragma once

#include <optional>
#include <string>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct ConfigDirectory {
  std::string path;
  [[nodiscard]] std::string models() const { return path + "/models"; }
  [[nodiscard]] std::string gpus() const { return path + "/gpus"; }
  [[nodiscard]] std::string hosts() const { return path + "/hosts"; }
};

/// Errors: a folder that was named and is not there; none found.
[[nodiscard]] Result<ConfigDirectory> find_configs(const std::optional<std::string>& named);

}  // namespace stowage
