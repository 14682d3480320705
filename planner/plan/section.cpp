#include "planner/plan/section.hpp"

#include <algorithm>
#include <limits>

namespace stowage {

Section::Section(const YamlNode& node, std::string_view name, Mistakes& mistakes)
    : FieldReader(node, {.of = name}, mistakes) {}

void Section::name(std::string_view key, std::string& target) {
  const YamlNode* value = find(key);
  if (value == nullptr) return;
  const bool is_word =
      value->is_scalar() && !value->text.empty() && std::ranges::all_of(value->text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_';
      });
  if (is_word) {
    target = value->text;
  } else {
    refuse(*value, key, "a word of letters, digits, '-' and '_'");
  }
}

void Section::version(std::string_view key, ReleaseVersion& target) {
  const YamlNode* value = find(key);
  if (value == nullptr) return;
  if (const auto version = value->is_scalar() ? parse_version(value->text) : std::nullopt) {
    target = *version;
  } else {
    refuse(*value, key, "a version such as 12.1");
  }
}

void Section::count(std::string_view key, int& target) {
  std::int64_t number = target;
  integer(key, 0, std::numeric_limits<int>::max(), number);
  target = static_cast<int>(number);
}

void Section::bytes(std::string_view key, Bytes& target) {
  std::int64_t count = target.count();
  integer(key, 0, most_plan_bytes, count);
  target = Bytes(count);
}

void Section::optional_bytes(std::string_view key, std::optional<Bytes>& target) {
  std::int64_t count = 0;
  if (integer(key, 0, most_plan_bytes, count, Presence::optional)) target = Bytes(count);
}

void Section::bytes_or_none(std::string_view key, Bytes& target) {
  std::int64_t count = 0;
  if (integer(key, 0, most_plan_bytes, count, Presence::optional)) target = Bytes(count);
}

void Section::optional_real(std::string_view key, std::optional<double>& target) {
  double value = 0;
  if (real(key, value, Presence::optional)) target = value;
}

}  // namespace stowage
