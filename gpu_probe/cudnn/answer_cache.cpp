#include "gpu_probe/cudnn/answer_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <sstream>
#include <utility>

#include "estimator/base/hash.hpp"
#include "gpu_probe/cudnn/circumstances.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "cudnn-";
constexpr std::string_view suffix = ".answers";
constexpr std::string_view unfinished = ".new-";  // what follows the name while it is written
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

// A pipe in the file's place must not hold us up, nor a link lead elsewhere.
std::optional<std::string> bytes_of(const std::string& path) {
  const File file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found = {};
  if (file.get() < 0 || fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode) ||
      !is_ours(found) || found.st_size > static_cast<off_t>(largest_answer_file)) {
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

// Beyond `ulimit -f` a write would end the program with SIGXFSZ.
bool may_have(std::size_t bytes) {
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

void replace(const std::string& path, std::string_view bytes) {
  if (!may_have(bytes.size())) return;
  std::string temporary = fmt::format("{}{}XXXXXX", path, unfinished);
  bool whole = false;
  {
    const File file(mkostemp(temporary.data(), O_CLOEXEC));
    if (file.get() < 0) return;
    whole = put_bytes(file.get(), bytes);
  }
  if (!whole || std::rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
}

// Files that were longest unused, beyond `most_answer_files`, and what a killed writer left.
void tidy(const std::string& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  const auto now = fs::file_time_type::clock::now();
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    std::error_code gone;  // by another process
    const auto time = entry->last_write_time(gone);
    if (gone) continue;
    if (name.ends_with(suffix)) {
      files.emplace_back(time, entry->path());
    } else if (name.find(unfinished) != std::string::npos && now - time > abandoned_after) {
      fs::remove(entry->path(), gone);
    }
  }
  std::ranges::sort(files, std::greater<>());
  for (std::size_t i = most_answer_files; i < files.size(); ++i) {
    fs::remove(files[i].second, error);
  }
}

// Not every question makes cuDNN load every part.
std::string united(const std::string& some, const std::string& others) {
  std::set<std::string> lines;
  std::istringstream text(some + others);
  for (std::string line; std::getline(text, line);) lines.insert(line);
  return lines.empty() ? "" : fmt::format("{}\n", fmt::join(lines, "\n"));
}

std::string absolute_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value == '/' ? value : "";
}

}  // namespace

std::string default_answer_folder() {
  const char* off = std::getenv("STOWAGE_NO_CACHE");
  if (off != nullptr && *off != '\0') return "";
  const std::string cache = absolute_variable("XDG_CACHE_HOME");
  if (!cache.empty()) return cache + "/stowage";
  const std::string home = absolute_variable("HOME");
  return home.empty() ? "" : home + "/.cache/stowage";
}

CudnnAnswerCache::CudnnAnswerCache(std::string folder, std::string circumstances)
    : folder_(std::move(folder)), circumstances_(std::move(circumstances)) {
  if (circumstances_.empty()) folder_.clear();
  kept_ = read();
  if (!kept_) return;
  // So that files in use are the last to be dropped.
  std::error_code ignored;
  const auto now = fs::file_time_type::clock::now();
  if (now - fs::last_write_time(path(), ignored) > touched_after && !ignored) {
    fs::last_write_time(path(), now, ignored);
  }
}

std::string CudnnAnswerCache::path() const {
  if (folder_.empty()) return "";
  return fmt::format("{}/{}{}{}", folder_, prefix, hash_text(circumstances_), suffix);
}

std::optional<AnswerFileView> CudnnAnswerCache::read() const {
  if (folder_.empty() || !is_folder_of_ours(folder_)) return std::nullopt;
  auto bytes = bytes_of(path());
  if (!bytes) return std::nullopt;
  auto view = AnswerFileView::open(std::move(*bytes));
  if (!view || view->circumstances() != circumstances_ || !still_so(std::string(view->parts()))) {
    return std::nullopt;
  }
  return view;
}

std::optional<WorkspaceAnswer> CudnnAnswerCache::find(std::string question) {
  if (!kept_) return std::nullopt;
  auto answer = kept_->find(question);
  if (!answer) return std::nullopt;
  found_.push_back(std::move(question));
  return WorkspaceAnswer{std::move(answer->engines), WorkspaceOrigin::cudnn,
                         std::move(answer->benchmark)};
}

void CudnnAnswerCache::add(std::string question, const WorkspaceAnswer& answer) {
  if (folder_.empty()) return;
  fresh_.emplace(std::move(question),
                 KeptAnswer{.engines = answer.engines, .benchmark = answer.benchmark});
}

void CudnnAnswerCache::write(const std::string& parts) const {
  if (fresh_.empty()) return;
  std::error_code error;
  if (!fs::exists(folder_, error)) {
    fs::create_directories(folder_, error);
    fs::permissions(folder_, fs::perms::owner_all, error);
  }
  if (!is_folder_of_ours(folder_)) return;
  // Once more: another process may have added to it.
  AnswerFile file;
  if (const auto now = read()) file = now->all();
  ++file.generation;
  file.circumstances = circumstances_;
  file.parts = united(file.parts, parts);
  for (const std::string& question : found_) {
    const auto answer = file.answers.find(question);
    if (answer != file.answers.end()) answer->second.used = file.generation;
  }
  for (const auto& [question, answer] : fresh_) {
    file.answers[question] = {file.generation, answer.engines, answer.benchmark};
  }
  replace(path(), encode_answers(std::move(file)));
  tidy(folder_);
}

}  // namespace stowage
