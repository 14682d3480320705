// stowage summary of weight files: what lies on disk, by format.
#pragma once

#include <optional>

#include "cli/options/command.hpp"
#include "cli/options/request.hpp"

namespace stowage {

/// nullopt: MODEL is no safetensors or GGUF file, and no folder of such without a config.json.
[[nodiscard]] std::optional<Result<Answer>> weights_summary(const SummaryRequest& request);

}  // namespace stowage
