// The local Hugging Face cache (huggingface_hub's layout), read and never written:
//
//   CACHE/models--ORG--NAME/refs/REVISION               a commit
//   CACHE/models--ORG--NAME/snapshots/COMMIT/config.json  a link into CACHE/models--ORG--NAME/blobs
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// Before a name on the hub: "hf:meta-llama/Meta-Llama-3-8B".
inline constexpr std::string_view cache_prefix = "hf:";

/// HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else HF_HOME/hub, else
/// XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub; "~" at their beginning is HOME.
[[nodiscard]] std::filesystem::path environment_cache();

/// The config.json of "org/name" or "name" in `cache`; "@REVISION" behind it names a branch, a tag
/// or a commit in place of "main".
/// Errors: a name that is none; one that is not in the cache, or not in that revision, or whose
/// config.json is missing there; each with how to get it or with what is there.
[[nodiscard]] Result<std::filesystem::path> cached_config(const std::string& name,
                                                          const std::filesystem::path& cache);

}  // namespace stowage
