// A whole file, or stdin for "-", as a SourceText.
#pragma once

#include <string>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// Errors: it cannot be opened or read, is a folder, or holds more than 1 GiB.
[[nodiscard]] Result<SourceTextPtr> read_source(const std::string& path);

}  // namespace stowage
