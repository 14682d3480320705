#include "planner/plan/section_writer.hpp"

#include <algorithm>

namespace stowage {
namespace {

/// Whether a text can stand in a literal block and be read back byte for byte.
bool is_plain_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

}  // namespace

std::string yaml_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02X}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

void SectionWriter::literal(std::string_view key, std::string_view text) {
  if (text.empty() || !is_plain_text(text) || text.find_first_not_of('\n') == text.npos) {
    line("{}: {}", key, yaml_quoted(text));
    return;
  }
  line("{}: |2{}", key, text.back() == '\n' ? '+' : '-');
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    part.empty() ? raw("\n") : line("  {}", part);
    begin = end + 1;
  }
}

}  // namespace stowage
