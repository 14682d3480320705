// Read-only access to the local Hugging Face cache (huggingface_hub's layout):
//
//   CACHE/models--ORG--NAME/refs/REVISION               a commit
//   CACHE/models--ORG--NAME/snapshots/COMMIT/config.json  a link into CACHE/models--ORG--NAME/blobs
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// The prefix of a name on the hub: "hf:meta-llama/Meta-Llama-3-8B".
inline constexpr std::string_view cache_prefix = "hf:";

/// The cache's folder by the environment: HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else
/// HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. A leading "~"
/// is HOME.
[[nodiscard]] std::filesystem::path environment_cache();

/// The config.json of "org/name" or "name" in `cache`; "@REVISION" behind it names a branch, a tag
/// or a commit in place of "main".
/// Errors: an invalid name; a name that is not in the cache or not in that revision, or whose
/// config.json is missing; each with how to get it or with what is there.
[[nodiscard]] Result<std::filesystem::path> cached_config(const std::string& name,
                                                          const std::filesystem::path& cache);

}  // namespace stowage
