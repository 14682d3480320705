#include "estimator/base/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace stowage {

namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool continues(std::string_view text, std::size_t at) {
  return at < text.size() && (byte_at(text, at) & 0xc0U) == 0x80U;
}

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 1;
};

// nullopt: not the shortest form of a Unicode scalar value.
std::optional<CodePoint> decode(std::string_view text) {
  const unsigned char first = byte_at(text, 0);
  if (first < 0x80) return CodePoint{first, 1};
  struct Form {
    unsigned char mask, lead;
    std::size_t bytes;
    std::uint32_t least;
  };
  constexpr std::array<Form, 3> forms{
      {{0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800}, {0xf8, 0xf0, 4, 0x10000}}};
  for (const Form& form : forms) {
    if ((first & form.mask) != form.lead) continue;
    std::uint32_t value = first & static_cast<unsigned char>(~form.mask);
    for (std::size_t i = 1; i < form.bytes; ++i) {
      if (!continues(text, i)) return std::nullopt;
      value = value << 6U | (byte_at(text, i) & 0x3fU);
    }
    const bool is_surrogate = value >= 0xd800 && value <= 0xdfff;
    if (value < form.least || value > 0x10ffff || is_surrogate) return std::nullopt;
    return CodePoint{value, form.bytes};
  }
  return std::nullopt;
}

// C0 and C1 controls, line separators, and what embeds or overrides the direction of writing.
bool moves_the_cursor(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200e && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

std::string escaped(std::string_view piece) {
  if (piece == "\n") return "\\n";
  if (piece == "\t") return "\\t";
  if (piece == "\r") return "\\r";
  const auto code = decode(piece);
  if (code && code->value >= 0x80) return fmt::format("\\u{:04x}", code->value);
  return fmt::format("\\x{:02x}", byte_at(piece, 0));
}

std::string printable(std::string_view text, std::string_view kept) {
  std::string out;
  while (!text.empty()) {
    const TextPiece piece = first_piece(text);
    const std::string_view bytes = text.substr(0, piece.bytes);
    const bool stays = piece.is_printable || kept.find(bytes.front()) != std::string_view::npos;
    out += stays ? std::string(bytes) : escaped(bytes);
    text.remove_prefix(piece.bytes);
  }
  return out;
}

}  // namespace

TextPiece first_piece(std::string_view text) {
  const auto code = decode(text);
  if (!code) return {.bytes = 1, .is_printable = false};
  return {.bytes = code->bytes, .is_printable = !moves_the_cursor(code->value)};
}

std::string printable_line(std::string_view text) { return printable(text, ""); }
std::string printable_text(std::string_view text) { return printable(text, "\n\t"); }

std::size_t column_count(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

}  // namespace stowage
