#include "planner/plan/section.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

namespace stowage {
namespace {

template <typename Number>
std::optional<Number> parse_number(const YamlNode& value) {
  if (!value.is_scalar() || value.quoted) return std::nullopt;
  Number number{};
  const char* end = value.text.data() + value.text.size();
  const auto [stopped, failed] = std::from_chars(value.text.data(), end, number);
  if (failed != std::errc() || stopped != end) return std::nullopt;
  return number;
}

}  // namespace

Section::Section(const YamlNode& node, std::string name, Mistakes& mistakes)
    : node_(node), name_(std::move(name)), mistakes_(mistakes) {
  if (!node.is_mapping()) {
    mistakes_.error(node.mark, fmt::format("{} must be a mapping, not {}", name_, describe(node)));
  }
}

const YamlNode* Section::find(std::string_view key, bool required) {
  asked_.push_back(key);
  if (!node_.is_mapping()) return nullptr;
  const YamlNode* value = node_.find(key);
  if (value == nullptr && required) {
    mistakes_.error(node_.mark, fmt::format("{} lacks '{}'", name_, key));
  }
  return value;
}

void Section::text(std::string_view key, std::string& target) {
  const YamlNode* value = find(key);
  if (value == nullptr) return;
  if (!value->is_scalar()) return refuse(*value, key, "a text");
  target = value->text;
}

void Section::name(std::string_view key, std::string& target) {
  const YamlNode* value = find(key);
  if (value == nullptr) return;
  const bool is_word =
      value->is_scalar() && !value->text.empty() && std::ranges::all_of(value->text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_';
      });
  if (!is_word) return refuse(*value, key, "a word of letters, digits, '-' and '_'");
  target = value->text;
}

void Section::version(std::string_view key, ReleaseVersion& target) {
  const YamlNode* value = find(key);
  if (value == nullptr) return;
  const auto version = value->is_scalar() ? parse_version(value->text) : std::nullopt;
  if (!version) return refuse(*value, key, "a version such as 12.1");
  target = *version;
}

void Section::integer(std::string_view key, std::int64_t least, std::int64_t most,
                      std::int64_t& target) {
  const YamlNode* value = find(key);
  if (value == nullptr) return;
  const auto number = parse_number<std::int64_t>(*value);
  if (!number || *number < least || *number > most) {
    return refuse(*value, key, fmt::format("an integer from {} to {}", least, most));
  }
  target = *number;
}

void Section::count(std::string_view key, int& target) {
  std::int64_t number = target;
  integer(key, 0, std::numeric_limits<int>::max(), number);
  target = static_cast<int>(number);
}

void Section::bytes(std::string_view key, Bytes& target) {
  std::int64_t count = 0;
  integer(key, 0, most_plan_bytes, count);
  target = Bytes(count);
}

void Section::optional_bytes(std::string_view key, std::optional<Bytes>& target) {
  const YamlNode* value = find(key, false);
  if (value == nullptr) return;
  const auto number = parse_number<std::int64_t>(*value);
  if (!number || *number < 0 || *number > most_plan_bytes) {
    return refuse(*value, key, fmt::format("an integer from 0 to {}", most_plan_bytes));
  }
  target = Bytes(*number);
}

void Section::real(std::string_view key, double& target) {
  const YamlNode* value = find(key);
  if (value == nullptr) return;
  const auto number = parse_number<double>(*value);
  if (!number || !std::isfinite(*number) || *number < 0) {
    return refuse(*value, key, "a number that is not negative");
  }
  target = *number;
}

void Section::boolean(std::string_view key, bool& target) {
  const YamlNode* value = find(key);
  if (value == nullptr) return;
  if (!value->is_scalar() || (value->text != "true" && value->text != "false")) {
    return refuse(*value, key, "true or false");
  }
  target = value->text == "true";
}

void Section::refuse(const YamlNode& value, std::string_view key, std::string_view expected) {
  mistakes_.error(value.mark,
                  fmt::format("'{}' must be {}, not {}", key, expected, describe(value)));
}

void Section::finish() {
  if (!node_.is_mapping()) return;
  const std::set<std::string_view> known(asked_.begin(), asked_.end());
  for (std::size_t i = 0; i < node_.entry_count(); ++i) {
    const YamlNode& key = node_.key(i);
    if (key.is_scalar() && known.contains(key.text)) continue;
    mistakes_.error(key.mark, fmt::format("{} has no '{}'", name_, key.text),
                    mistakes_.suggest(key.text, asked_));
  }
}

}  // namespace stowage
