// CudnnAnswerCache: cuDNN's answers, kept from one run to the next (docs/workspaces.md).
//
// The folder has one file for each set of circumstances. The file holds its circumstances in full:
// the hash in its name decides where an answer is looked for, never which answer is given. The file
// is read whole when the cache is opened, and replaced whole when it is written (file_cache.hpp).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gpu_probe/cudnn/answer_file.hpp"

namespace stowage {

/// In a folder; files that were unused for longest are removed.
inline constexpr std::size_t most_answer_files = 64;

/// Not thread-safe.
class CudnnAnswerCache {
 public:
  /// Keeps nothing where `folder` is "" or belongs to another user.
  CudnnAnswerCache(std::string folder, std::string circumstances);

  /// `question`: by question_bytes().
  [[nodiscard]] std::optional<WorkspaceAnswer> find(std::string question);
  void add(std::string question, const WorkspaceAnswer& answer);

  /// Adds the new answers to the file, where there are any. `parts`: by loaded_cudnn_parts().
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
