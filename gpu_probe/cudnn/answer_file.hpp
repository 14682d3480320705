// The bytes of a file of cuDNN's answers (docs/workspaces.md, "The cache").
//
//   "stowage cuDNN answers 2\n", the hash of what follows (32 digits), "\n", then the body:
//   generation, circumstances, parts, engine names, answers sorted by their questions
//
// Numbers are 32 bits, little-endian, and workspaces 64; a text is its length and its bytes; a
// table is a count, the end of each element, and the elements. So one answer is found by bisection
// and nothing else is parsed. A file is ours or an attacker's: every offset is checked, and what
// does not fit together is no file.
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

/// A question in full, as bytes. Two questions have the same bytes only if they are equal, so what
/// is found under them is never another question's answer.
[[nodiscard]] std::string question_bytes(const ConvolutionQuery& query);
[[nodiscard]] std::string question_bytes(const AttentionQuery& query);

struct KeptAnswer {
  std::uint32_t used = 0;  ///< the last generation that asked for it
  std::vector<Engine> engines;
  std::vector<Engine> benchmark = {};
};

struct AnswerFile {
  std::uint32_t generation = 0;  ///< how often the file was written
  std::string circumstances;     ///< all that the answers depend on and is known before cuDNN runs
  std::string parts;             ///< the libraries that gave them, a line each
  std::map<std::string, KeptAnswer> answers;  ///< by question_bytes
};

/// Of the most recently used answers, as many as fit `largest_answer_file` and `most`.
[[nodiscard]] std::string encode_answers(AnswerFile file, std::size_t most = most_kept_answers);

class AnswerFileView {
 public:
  /// Nullopt where `bytes` is not such a file, whole and unharmed.
  [[nodiscard]] static std::optional<AnswerFileView> open(std::string bytes);

  [[nodiscard]] std::string_view circumstances() const { return circumstances_; }
  [[nodiscard]] std::string_view parts() const { return parts_; }
  [[nodiscard]] std::optional<KeptAnswer> find(std::string_view question) const;
  /// All of it; what cannot be read is left out.
  [[nodiscard]] AnswerFile all() const;

 private:
  struct Table {
    std::string_view ends, elements;
    [[nodiscard]] std::size_t size() const { return ends.size() / 4; }
    [[nodiscard]] std::string_view at(std::size_t i) const;  ///< "" where its ends are wrong
  };
  class Cursor;
  [[nodiscard]] std::optional<KeptAnswer> answer(Cursor cursor) const;
  /// False where the next engines are not whole.
  [[nodiscard]] bool take_engines(Cursor& cursor, std::vector<Engine>& engines) const;

  std::shared_ptr<const std::string> bytes_;  // what the views below are of
  std::uint32_t generation_ = 0;
  std::string_view circumstances_, parts_;
  Table names_, answers_;
};

}  // namespace stowage
