// What a user is told beside an answer, or instead of one; and an answer that may be refused.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace stowage {

struct Message {
  enum class Kind { error, warning, note };
  Kind kind = Kind::error;
  std::string text;  ///< one sentence; settings are named as fields are, between backquotes
  std::string file;  ///< where, in what was read; empty: no place
  int line = 0;      ///< 1-based; 0: no place
  int column = 0;    ///< 1-based, in bytes; 0: no place
  std::string hint;  ///< what would cure it; empty: nothing is known
  std::string
      shown;  ///< all of it as a compiler prints it: the line of the file, a caret, the hint
};
using Messages = std::vector<Message>;

/// An answer, or why there is none: at least one error.
template <typename T>
using Answered = tl::expected<T, Messages>;

/// Their `shown` texts, one after the other.
[[nodiscard]] std::string shown(const Messages& messages);

}  // namespace stowage
