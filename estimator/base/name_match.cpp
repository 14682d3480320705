#include "estimator/base/name_match.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>

namespace stowage {

std::string folded_name(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) continue;
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

bool has_words(std::string_view name, std::string_view filter) {
  const std::string folded = folded_name(name);
  while (!filter.empty()) {
    const std::size_t space = filter.find(' ');
    if (folded.find(folded_name(filter.substr(0, space))) == std::string::npos) return false;
    filter = space == std::string_view::npos ? std::string_view() : filter.substr(space + 1);
  }
  return true;
}

std::string alternatives(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += fmt::format("'{}'", words[i]);
  }
  return text;
}

std::string listed(const std::vector<std::string>& words, std::size_t most) {
  if (words.empty()) return {};
  const bool is_long = words.size() > most;
  const std::size_t named = is_long ? most : words.size() - 1;
  const std::span first(words.begin(), named);
  if (is_long) return fmt::format("{} and {} others", fmt::join(first, ", "), words.size() - most);
  if (first.empty()) return words.front();
  return fmt::format("{} and {}", fmt::join(first, ", "), words.back());
}

}  // namespace stowage
