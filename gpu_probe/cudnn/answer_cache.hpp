// CudnnAnswerCache: cuDNN's answers, kept from one run to the next (docs/workspaces.md).
//
// A file of a folder for each set of circumstances, which it holds in full: the hash in its name
// decides where an answer is looked for and never which one is given. Read whole when the cache is
// opened, replaced whole when it is written (kept_files.hpp).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gpu_probe/cudnn/answer_file.hpp"

namespace stowage {

inline constexpr std::size_t most_answer_files = 64;  ///< of a folder; the longest unused go

/// Not thread-safe.
class CudnnAnswerCache {
 public:
  /// Without a folder (""), or with one that belongs to another user, nothing is kept.
  CudnnAnswerCache(std::string folder, std::string circumstances);

  /// A question is question_bytes'.
  [[nodiscard]] std::optional<WorkspaceAnswer> find(std::string question);
  void add(std::string question, const WorkspaceAnswer& answer);

  /// Adds what is new to the file; `parts` as loaded_cudnn_parts has them. Does nothing where
  /// nothing is new.
  void write(const std::string& parts) const;

  [[nodiscard]] std::string path() const;  ///< of the file; "" where nothing is kept

 private:
  [[nodiscard]] std::optional<AnswerFileView> read() const;

  std::string folder_;
  std::string circumstances_;
  std::optional<AnswerFileView> kept_;
  std::map<std::string, KeptAnswer> fresh_;  // by question_bytes
  std::vector<std::string> found_;           // the questions that kept_ answered
};

}  // namespace stowage
