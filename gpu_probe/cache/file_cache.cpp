#include "gpu_probe/cache/file_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

namespace stowage {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view unfinished = ".new-";  // in the name of a file that is being written
constexpr auto abandoned_after = std::chrono::hours(1);
constexpr auto touched_after = std::chrono::hours(24);

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

bool is_ours(const struct stat& found) {
  return found.st_uid == geteuid() && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_folder_of_ours(const std::string& path) {
  struct stat found = {};
  return stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == geteuid();
}

// Refuses links, which may lead elsewhere, and does not block on a pipe.
std::optional<std::string> bytes_of(const std::string& path, std::size_t largest) {
  const File file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found = {};
  if (file.get() < 0 || fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode) ||
      !is_ours(found) || found.st_size > static_cast<off_t>(largest)) {
    return std::nullopt;
  }
  std::string bytes(static_cast<std::size_t>(found.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t count = ::read(file.get(), bytes.data() + have, bytes.size() - have);
    if (count <= 0) return std::nullopt;
    have += static_cast<std::size_t>(count);
  }
  return bytes;
}

// Whether a file may have so many bytes (`ulimit -f`): a write beyond that would end the program
// with SIGXFSZ.
bool may_be_written(std::size_t bytes) {
  rlimit limit = {};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes <= limit.rlim_cur;
}

bool put_bytes(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

void replace_file(const std::string& path, std::string_view bytes) {
  if (!may_be_written(bytes.size())) return;
  std::string temporary = fmt::format("{}{}XXXXXX", path, unfinished);
  bool whole = false;
  {
    const File file(mkostemp(temporary.data(), O_CLOEXEC));
    if (file.get() < 0) return;
    whole = put_bytes(file.get(), bytes);
  }
  if (!whole || std::rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
}

std::string absolute_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value == '/' ? value : "";
}

}  // namespace

std::string default_cache_folder() {
  const char* off = std::getenv("STOWAGE_NO_CACHE");
  if (off != nullptr && *off != '\0') return "";
  const std::string cache = absolute_variable("XDG_CACHE_HOME");
  if (!cache.empty()) return cache + "/stowage";
  const std::string home = absolute_variable("HOME");
  return home.empty() ? "" : home + "/.cache/stowage";
}

std::optional<std::string> read_cached_file(const std::string& folder, const std::string& path,
                                            std::size_t largest) {
  if (folder.empty() || !is_folder_of_ours(folder)) return std::nullopt;
  return bytes_of(path, largest);
}

void write_cached_file(const std::string& folder, const std::string& path, std::string_view bytes) {
  if (folder.empty()) return;
  std::error_code error;
  if (!fs::exists(folder, error)) {
    fs::create_directories(folder, error);
    fs::permissions(folder, fs::perms::owner_all, error);
  }
  if (is_folder_of_ours(folder)) replace_file(path, bytes);
}

void mark_cached_file_used(const std::string& path) {
  std::error_code ignored;
  const auto now = fs::file_time_type::clock::now();
  if (now - fs::last_write_time(path, ignored) > touched_after && !ignored) {
    fs::last_write_time(path, now, ignored);
  }
}

void drop_unused_files(const std::string& folder, const CachedFileNames& names, std::size_t most) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  const auto now = fs::file_time_type::clock::now();
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(names.prefix)) continue;
    std::error_code gone;  // set where another process has removed it
    const auto time = entry->last_write_time(gone);
    if (gone) continue;
    if (name.ends_with(names.suffix)) {
      files.emplace_back(time, entry->path());
    } else if (name.find(unfinished) != std::string::npos && now - time > abandoned_after) {
      fs::remove(entry->path(), gone);
    }
  }
  std::ranges::sort(files, std::greater<>());
  for (std::size_t i = most; i < files.size(); ++i) {
    fs::remove(files[i].second, error);
  }
}

}  // namespace stowage
