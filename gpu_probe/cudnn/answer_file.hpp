// The format of a file of cuDNN's answers (docs/workspaces.md, "The cache").
//
//   "stowage cuDNN answers 2\n", the hash of what follows (32 digits), "\n", then the body:
//   generation, circumstances, parts, engine names, answers sorted by their questions
//
// Numbers have 32 bits, workspaces 64, little-endian. A text is its length and its bytes. A table
// is a count, the end of each element, and the elements. So an answer is found by bisection, and
// nothing else is parsed. The file may have been written by an attacker: every offset is checked,
// and a file whose parts do not fit together is rejected whole.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

inline constexpr std::size_t largest_answer_file = std::size_t{4} << 20;  ///< bytes
inline constexpr std::size_t most_kept_answers = 16'000;                  ///< in one file

/// A question in full, as bytes. Two questions have the same bytes only if they are equal, so an
/// answer that is found under them is the answer to this question.
[[nodiscard]] std::string question_bytes(const ConvolutionQuery& query);
[[nodiscard]] std::string question_bytes(const AttentionQuery& query);

struct KeptAnswer {
  std::uint32_t used = 0;  ///< the last generation in which it was asked for
  std::vector<Engine> engines;
  std::vector<Engine> benchmark = {};
};

struct AnswerFile {
  std::uint32_t generation = 0;  ///< how often the file has been written
  std::string circumstances;     ///< what the answers depend on, as known before cuDNN runs
  std::string parts;             ///< the libraries that gave the answers, a line each
  std::map<std::string, KeptAnswer> answers;  ///< by question_bytes
};

/// The file's bytes. Keeps the most recently used answers: at most `most`, and as many as fit into
/// `largest_answer_file`.
[[nodiscard]] std::string encode_answers(AnswerFile file, std::size_t most = most_kept_answers);

class AnswerFileView {
 public:
  /// Nullopt where `bytes` is not such a file, or is damaged.
  [[nodiscard]] static std::optional<AnswerFileView> open(std::string bytes);

  [[nodiscard]] std::string_view circumstances() const { return circumstances_; }
  [[nodiscard]] std::string_view parts() const { return parts_; }
  [[nodiscard]] std::optional<KeptAnswer> find(std::string_view question) const;
  /// The whole file, without answers that cannot be read.
  [[nodiscard]] AnswerFile all() const;

 private:
  struct Table {
    std::string_view ends, elements;
    [[nodiscard]] std::size_t size() const { return ends.size() / 4; }
    [[nodiscard]] std::string_view at(std::size_t i) const;  ///< "" where the ends do not fit
  };
  class Cursor;
  [[nodiscard]] std::optional<KeptAnswer> answer(Cursor cursor) const;
  /// Returns false where the list of engines is not whole.
  [[nodiscard]] bool take_engines(Cursor& cursor, std::vector<Engine>& engines) const;

  std::shared_ptr<const std::string> bytes_;  // the views below point into it
  std::uint32_t generation_ = 0;
  std::string_view circumstances_, parts_;
  Table names_, answers_;
};

}  // namespace stowage
