#include "estimator/text/field_reader.hpp"

#include <algorithm>
#include <set>

namespace stowage {
namespace {

// What is written in quotes is a word and never a number.
template <typename Number>
std::optional<Number> number_of(const YamlNode& value) {
  if (!value.is_scalar() || value.quoted) return std::nullopt;
  return parse_number<Number>(value.text);
}

}  // namespace

FieldReader::FieldReader(const YamlNode& node, const FieldWords& words, Mistakes& mistakes)
    : node_(node), of_(words.of), file_(words.file), refusal_(words.refusal), mistakes_(mistakes) {
  if (!node.is_mapping()) {
    mistakes_.error(node.mark, fmt::format("{} must be a mapping, not {}", of_, describe(node)));
  }
}

const YamlNode* FieldReader::find(std::string_view key, Presence presence) {
  asked_.push_back(key);
  if (!node_.is_mapping()) return nullptr;
  const YamlNode* value = node_.find(key);
  if (value == nullptr && presence == Presence::required) {
    mistakes_.error(node_.mark, fmt::format("{} lacks '{}'", of_, key));
  }
  return value;
}

bool FieldReader::text(std::string_view key, std::string& target, Presence presence) {
  const YamlNode* value = find(key, presence);
  if (value == nullptr) return false;
  if (!value->is_scalar()) return refuse(*value, key, "a text");
  target = value->text;
  return true;
}

bool FieldReader::word(std::string_view key, std::string& target, Presence presence,
                       std::string_view expected) {
  const YamlNode* value = find(key, presence);
  if (value == nullptr) return false;
  if (!value->is_scalar()) return refuse(*value, key, expected);
  if (value->text.empty()) {
    wrong(*value, fmt::format("'{}' is empty", key));
    return false;
  }
  target = value->text;
  return true;
}

bool FieldReader::integer(std::string_view key, std::int64_t least, std::int64_t most,
                          std::int64_t& target, Presence presence, std::string expected) {
  const YamlNode* value = find(key, presence);
  if (value == nullptr) return false;
  const auto number = number_of<std::int64_t>(*value);
  if (!number || *number < least || *number > most) {
    if (expected.empty()) expected = fmt::format("an integer from {} to {}", least, most);
    return refuse(*value, key, expected);
  }
  target = *number;
  return true;
}

bool FieldReader::real(std::string_view key, double& target, Presence presence,
                       std::string_view expected, double least, double most) {
  const YamlNode* value = find(key, presence);
  if (value == nullptr) return false;
  const auto number = number_of<double>(*value);
  if (!number || !(*number >= least && *number <= most)) return refuse(*value, key, expected);
  target = *number;
  return true;
}

bool FieldReader::boolean(std::string_view key, bool& target) {
  const YamlNode* value = find(key);
  if (value == nullptr) return false;
  if (!value->is_scalar() || (value->text != "true" && value->text != "false")) {
    return refuse(*value, key, "true or false");
  }
  target = value->text == "true";
  return true;
}

bool FieldReader::size(std::string_view key, Bytes& target, Presence presence,
                       std::string_view example) {
  const YamlNode* value = find(key, presence);
  if (value == nullptr) return false;
  const auto bytes = value->is_scalar() ? parse_bytes(value->text) : failure("");
  if (!bytes) return refuse(*value, key, fmt::format("a size such as {}", example));
  target = *bytes;
  return true;
}

bool FieldReader::quantity(std::string_view key, double& target, std::span<const Unit> units,
                           Presence presence, std::string_view expected) {
  const YamlNode* value = find(key, presence);
  if (value == nullptr) return false;
  const auto number = value->is_scalar() ? parse_in_units(value->text, units) : std::nullopt;
  if (!number) return refuse(*value, key, expected);
  target = *number;
  return true;
}

bool FieldReader::refuse(const YamlNode& value, std::string_view key, std::string_view expected) {
  using enum FieldWords::Refusal;
  if (refusal_ == is_not && value.is_scalar()) {
    wrong(value, fmt::format("'{}' is not {}: '{}'", key, expected, value.text));
  } else if (refusal_ == is_not) {
    wrong(value, fmt::format("'{}' takes one plain value, not {}", key, describe(value)));
  } else {
    wrong(value, fmt::format("'{}' {} {}, not {}", key, refusal_ == takes ? "takes" : "must be",
                             expected, describe(value)));
  }
  return false;
}

void FieldReader::wrong(const YamlNode& at, std::string message) {
  mistakes_.error(at.mark, std::move(message));
}

void FieldReader::finish() {
  if (!node_.is_mapping()) return;
  const std::set<std::string_view> known(asked_.begin(), asked_.end());
  for (std::size_t i = 0; i < node_.entry_count(); ++i) {
    const YamlNode& key = node_.key(i);
    if (key.is_scalar() && known.contains(key.text)) continue;
    mistakes_.error(key.mark,
                    file_.empty() ? fmt::format("{} has no '{}'", of_, key.text)
                                  : fmt::format("unknown key '{}' in {}", key.text, file_),
                    mistakes_.suggest(key.text, asked_));
  }
}

}  // namespace stowage
