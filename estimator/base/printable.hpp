// Text from files, arguments and the environment, made fit for a terminal.
//
// A name may hold any byte. Printed as it is, an escape sequence in it moves the cursor, recolours
// or retitles the terminal. So whatever is printed for people goes through here: control
// characters, invalid UTF-8 and the characters that turn the writing direction are shown as
// escapes: "\x1b", "\xff", "\u202e". All else stays.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stowage {

/// One code point of a text, or one byte that belongs to none.
struct TextPiece {
  std::size_t bytes = 1;     ///< of the text, at least 1
  bool is_printable = true;  ///< false: it is to be shown as an escape
};
/// The piece that `text` begins with. Precondition: it is not empty.
[[nodiscard]] TextPiece first_piece(std::string_view text);

/// Newlines and tabs are escaped as well: "\n", "\t".
[[nodiscard]] std::string printable_line(std::string_view text);
/// Newlines and tabs stay.
[[nodiscard]] std::string printable_text(std::string_view text);

/// Code points, which is how many columns most text takes.
[[nodiscard]] std::size_t column_count(std::string_view text);

}  // namespace stowage
