#include "answers/question/shell_word.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "estimator/base/printable.hpp"

namespace stowage {

namespace {

bool is_plain(char c) {
  constexpr std::string_view harmless = "_-./:=,+@%";
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         harmless.find(c) != std::string_view::npos;
}

// $'...': whatever has no picture is written as the bytes that it is made of.
std::string ansi_quoted(std::string_view word) {
  std::string out = "$'";
  while (!word.empty()) {
    const TextPiece piece = first_piece(word);
    for (const char c : word.substr(0, piece.bytes)) {
      if (!piece.is_printable) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      } else {
        if (c == '\'' || c == '\\') out += '\\';
        out += c;
      }
    }
    word.remove_prefix(piece.bytes);
  }
  return out + '\'';
}

}  // namespace

std::string shell_word(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  if (printable_line(word) != word) return ansi_quoted(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

}  // namespace stowage
