// Diagnostic: what a user is told about a mistake, with its place.
//
// Everything a user can cause is returned as Result<T> (a value, or one or more diagnostics); an
// exception or a failed assertion is a bug of ours. Rendered as compilers do it:
//
//   net.yaml:7:18: error: unknown attribute 'chanels' of conv2d
//      - conv2d: {chanels: 64, kernel: 3}
//                 ^~~~~~~
//   did you mean 'channels'?
//   note: ...
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace stowage {

/// A text that was read, kept so that its lines can be shown. Shared by all spans into it.
struct SourceText {
  std::string name;  ///< as the user typed it: a path, "-", or which option held it
  std::string text;
};
using SourceTextPtr = std::shared_ptr<const SourceText>;

/// A place in a source text. Lines and columns are 1-based; length is in bytes, at least 1.
struct SourceSpan {
  SourceTextPtr source;  ///< null: no place (a message about the command as a whole)
  int line = 0;
  int column = 0;
  int length = 1;
};

enum class Severity { error, warning, note };

struct Diagnostic {
  Severity severity = Severity::error;
  std::string message;                 ///< one sentence, no full stop, names quoted with ''
  SourceSpan span = {};                ///< where
  std::string hint = {};               ///< "did you mean 'channels'?" or what would cure it
  std::vector<Diagnostic> notes = {};  ///< other places that take part, severity note
};
using Diagnostics = std::vector<Diagnostic>;

template <typename T>
using Result = tl::expected<T, Diagnostics>;

/// One diagnostic as an error result.
[[nodiscard]] tl::unexpected<Diagnostics> failure(std::string message, std::string hint = {});
[[nodiscard]] tl::unexpected<Diagnostics> failure(Diagnostic diagnostic);

/// The text above, one block a diagnostic, each line ended by '\n'; at most `limit` blocks, then a
/// line that says how many more there are.
[[nodiscard]] std::string render(std::span<const Diagnostic> diagnostics, int limit = 20);

/// The candidate closest to `word` by edit distance (at most a third of its length, at least 1),
/// ties to the earlier; nullopt where none is near. O(len * len) a candidate.
[[nodiscard]] std::optional<std::string_view> closest(std::string_view word,
                                                      std::span<const std::string_view> candidates);
/// "did you mean 'x'?" or "".
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       std::span<const std::string_view> candidates);

}  // namespace stowage
