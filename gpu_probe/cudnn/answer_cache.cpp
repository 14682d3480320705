#include "gpu_probe/cudnn/answer_cache.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <sstream>
#include <utility>

#include "estimator/base/hash.hpp"
#include "gpu_probe/cache/file_cache.hpp"
#include "gpu_probe/cudnn/circumstances.hpp"

namespace stowage {

namespace {

constexpr CachedFileNames names{"cudnn-", ".answers"};

// The lines of both texts, each once. A run's list of libraries may lack some of an earlier run's,
// since not every question makes cuDNN load all of its libraries.
std::string union_of_lines(const std::string& some, const std::string& others) {
  std::set<std::string> lines;
  std::istringstream text(some + others);
  for (std::string line; std::getline(text, line);) lines.insert(line);
  return lines.empty() ? "" : fmt::format("{}\n", fmt::join(lines, "\n"));
}

}  // namespace

CudnnAnswerCache::CudnnAnswerCache(std::string folder, std::string circumstances)
    : folder_(std::move(folder)), circumstances_(std::move(circumstances)) {
  if (circumstances_.empty()) folder_.clear();
  kept_ = read();
  if (!kept_) return;
  mark_cached_file_used(path());
}

std::string CudnnAnswerCache::path() const {
  if (folder_.empty()) return "";
  return fmt::format("{}/{}{}{}", folder_, names.prefix, hash_text(circumstances_), names.suffix);
}

std::optional<AnswerFileView> CudnnAnswerCache::read() const {
  auto bytes = read_cached_file(folder_, path(), largest_answer_file);
  if (!bytes) return std::nullopt;
  auto view = AnswerFileView::open(std::move(*bytes));
  if (!view || view->circumstances() != circumstances_ ||
      !files_unchanged(std::string(view->parts()))) {
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
  // Read again: another process may have added to the file.
  AnswerFile file;
  if (const auto now = read()) file = now->all();
  ++file.generation;
  file.circumstances = circumstances_;
  file.parts = union_of_lines(file.parts, parts);
  for (const std::string& question : found_) {
    const auto answer = file.answers.find(question);
    if (answer != file.answers.end()) answer->second.used = file.generation;
  }
  for (const auto& [question, answer] : fresh_) {
    file.answers[question] = {file.generation, answer.engines, answer.benchmark};
  }
  write_cached_file(folder_, path(), encode_answers(std::move(file)));
  drop_unused_files(folder_, names, most_answer_files);
}

}  // namespace stowage
