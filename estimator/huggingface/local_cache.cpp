#include "estimator/huggingface/local_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <vector>

namespace stowage {

namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// "org/name" or "name": letters, digits, '-', '_' and '.', none that leads out of the cache.
bool is_repository_name(const std::string& name) {
  const auto part_is_good = [](std::string_view part) {
    if (part.empty() || part.size() > 96 || part.front() == '.' || part.front() == '-')
      return false;
    if (part.find("..") != std::string_view::npos || part.find("--") != std::string_view::npos) {
      return false;
    }
    return std::ranges::all_of(part, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '-' || c == '_' || c == '.';
    });
  };
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return part_is_good(name);
  return part_is_good(std::string_view(name).substr(0, slash)) &&
         part_is_good(std::string_view(name).substr(slash + 1));
}

/// The commit that refs/main names; empty: none.
std::string main_commit(const fs::path& repository) {
  std::ifstream file(repository / "refs" / "main");
  std::string commit(64, '\0');
  file.read(commit.data(), static_cast<std::streamsize>(commit.size()));
  commit.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  const auto end = std::ranges::find_if_not(
      commit, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  commit.erase(end, commit.end());
  return commit;
}

}  // namespace

fs::path environment_cache() {
  if (const std::string cache = environment("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  const std::string shared = environment("XDG_CACHE_HOME");
  const fs::path base =
      shared.empty() ? fs::path(environment("HOME")) / ".cache" : fs::path(shared);
  return base / "huggingface" / "hub";
}

Result<fs::path> cached_config(const std::string& name, const fs::path& cache) {
  if (!is_repository_name(name)) {
    return failure(fmt::format("'hf:{}' does not name a model", name),
                   "hf:ORG/NAME, as on the hub: hf:meta-llama/Meta-Llama-3-8B");
  }
  std::string folder = "models--" + name;
  if (const std::size_t slash = folder.find('/'); slash != std::string::npos) {
    folder.replace(slash, 1, "--");
  }
  const fs::path repository = cache / folder;
  std::error_code code;
  const std::string commit = main_commit(repository);
  if (!commit.empty()) {
    fs::path config = repository / "snapshots" / commit / "config.json";
    if (fs::is_regular_file(config, code)) return config;
  }
  return failure(
      fmt::format("'{}' is not in the Hugging Face cache {}", name, cache.string()),
      fmt::format("stowage does not download; `hf download {} config.json` puts it there, or name "
                  "the file itself",
                  name));
}

}  // namespace stowage
