#include "estimator/huggingface/local_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "estimator/base/read_source.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view main_branch = "main";

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// As huggingface_hub's expanduser.
fs::path with_home(const std::string& path) {
  if (path == "~") return environment("HOME");
  if (path.starts_with("~/")) return fs::path(environment("HOME")) / path.substr(2);
  return path;
}

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool is_name_part(std::string_view part) {
  return !part.empty() && part.size() <= 96 && part.front() != '.' && part.front() != '-' &&
         part.find("..") == std::string_view::npos && std::ranges::all_of(part, is_name_letter);
}

/// Whether it is "org/name" or "name", and stays within the cache's folder.
bool is_repository_name(std::string_view name) {
  if (name.find("--") != std::string_view::npos) return false;
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return is_name_part(name);
  return is_name_part(name.substr(0, slash)) && is_name_part(name.substr(slash + 1));
}

/// "v1.0", "refs/pr/1", a commit.
bool is_revision(std::string_view revision) {
  for (std::size_t slash = revision.find('/'); slash != std::string_view::npos;
       slash = revision.find('/')) {
    if (!is_name_part(revision.substr(0, slash))) return false;
    revision.remove_prefix(slash + 1);
  }
  return is_name_part(revision);
}

struct HubName {
  std::string repository, revision;
};

/// The commit in a file below refs/; empty: there is none.
std::string commit_in(const fs::path& reference) {
  constexpr std::size_t longest_commit = 64;
  std::string commit = read_file_start(reference.string(), longest_commit).value_or("");
  const auto end = std::ranges::find_if_not(
      commit, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  commit.erase(end, commit.end());
  return commit;
}

/// The commit of a reference, or the revision itself if it is a snapshot's name; empty: neither.
std::string commit_of(const fs::path& repository, const std::string& revision) {
  std::string commit = commit_in(repository / "refs" / revision);
  std::error_code code;
  if (commit.empty() && fs::is_directory(repository / "snapshots" / revision, code)) {
    commit = revision;
  }
  return commit;
}

/// Some names of references, else of snapshots, that can be asked for; sorted.
std::vector<std::string> revisions_in(const fs::path& repository) {
  constexpr std::size_t most_named = 5;
  std::vector<std::string> names;
  std::error_code code;
  const fs::path references = repository / "refs";
  for (fs::recursive_directory_iterator at(references, code), end; !code && at != end;
       at.increment(code)) {
    std::error_code ignored;
    if (!at->is_regular_file(ignored)) continue;
    names.push_back(at->path().lexically_relative(references).generic_string());
  }
  if (names.empty()) {
    code.clear();
    for (fs::directory_iterator at(repository / "snapshots", code), end; !code && at != end;
         at.increment(code)) {
      names.push_back(at->path().filename().string());
    }
  }
  std::erase_if(names, [](const std::string& name) { return !is_revision(name); });
  std::ranges::sort(names);
  if (names.size() > most_named) names.resize(most_named);
  return names;
}

std::string download_hint(const HubName& name) {
  return fmt::format(
      "stowage does not download; `hf download {} config.json`{} puts it there, or name the file "
      "itself",
      name.repository,
      name.revision == main_branch ? std::string()
                                   : fmt::format(" with the revision {}", name.revision));
}

}  // namespace

fs::path environment_cache() {
  for (const char* const variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const std::string cache = environment(variable); !cache.empty()) return with_home(cache);
  }
  if (const std::string home = environment("HF_HOME"); !home.empty()) {
    return with_home(home) / "hub";
  }
  const std::string shared = environment("XDG_CACHE_HOME");
  const fs::path base =
      shared.empty() ? fs::path(environment("HOME")) / ".cache" : with_home(shared);
  return base / "huggingface" / "hub";
}

Result<fs::path> cached_config(const std::string& name, const fs::path& cache) {
  const std::size_t at = name.find('@');
  const HubName asked{name.substr(0, at),
                      at == std::string::npos ? std::string(main_branch) : name.substr(at + 1)};
  if (!is_repository_name(asked.repository) || !is_revision(asked.revision)) {
    return failure(fmt::format("'hf:{}' does not name a model", name),
                   "hf:ORG/NAME, as on the hub: hf:meta-llama/Meta-Llama-3-8B; "
                   "hf:ORG/NAME@REVISION for a branch, a tag or a commit");
  }
  std::string folder = "models--" + asked.repository;
  if (const std::size_t slash = folder.find('/'); slash != std::string::npos) {
    folder.replace(slash, 1, "--");
  }
  const fs::path repository = cache / folder;
  const std::string commit = commit_of(repository, asked.revision);
  if (commit.empty()) {
    const std::vector<std::string> others = revisions_in(repository);
    if (others.empty()) {
      return failure(
          fmt::format("'{}' is not in the Hugging Face cache {}", asked.repository, cache.string()),
          download_hint(asked));
    }
    return failure(fmt::format("the Hugging Face cache {} has '{}', but no revision '{}' of it",
                               cache.string(), asked.repository, asked.revision),
                   fmt::format("there is hf:{}@{}; {}", asked.repository,
                               fmt::join(others, fmt::format(", hf:{}@", asked.repository)),
                               download_hint(asked)));
  }
  std::error_code code;
  fs::path config = repository / "snapshots" / commit / "config.json";
  if (fs::is_regular_file(config, code)) return config;
  if (fs::is_symlink(fs::symlink_status(config, code))) {
    return failure(fmt::format("the link {} leads to a file that is not there", config.string()),
                   download_hint(asked));
  }
  return failure(fmt::format("the Hugging Face cache {} has '{}', but no config.json of it",
                             cache.string(), asked.repository),
                 download_hint(asked));
}

}  // namespace stowage
