#include "estimator/document/fields.hpp"

#include <algorithm>

namespace stowage {

using Kind = JsonValue::Kind;

void refuse(const JsonValue& at, std::string message, std::string hint) {
  throw Refusal{
      {Diagnostic{.message = std::move(message), .span = at.span(), .hint = std::move(hint)}}};
}

std::int64_t integer_of(const JsonValue& value, std::string_view what, std::int64_t least,
                        std::int64_t most) {
  const bool is_integer = value.is(Kind::integer);
  if (is_integer && value.integer() >= least && value.integer() <= most) return value.integer();
  refuse(value, fmt::format("{} must be an integer from {} to {}, not {}", what, least, most,
                            value.describe()));
}

double real_of(const JsonValue& value, std::string_view what) {
  if (value.is(Kind::real)) return value.real();
  if (value.is(Kind::integer)) return static_cast<double>(value.integer());
  refuse(value, fmt::format("{} must be a number, not {}", what, value.describe()));
}

bool boolean_of(const JsonValue& value, std::string_view what) {
  if (value.is(Kind::boolean)) return value.boolean();
  refuse(value, fmt::format("{} must be true or false, not {}", what, value.describe()));
}

std::string text_of(const JsonValue& value, std::string_view what) {
  if (!value.is(Kind::text)) {
    refuse(value, fmt::format("{} must be a text, not {}", what, value.describe()));
  }
  const std::string_view text = value.text();
  if (text.size() > longest_recorded_name) {
    refuse(value, fmt::format("{} is over {} bytes long", what, longest_recorded_name));
  }
  const auto is_control = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  };
  if (std::any_of(text.begin(), text.end(), is_control)) {
    refuse(value, fmt::format("{} holds a control character", what));
  }
  return std::string(text);
}

std::string name_of(const JsonValue& value, std::string_view what) {
  std::string name = text_of(value, what);
  if (name.empty()) refuse(value, fmt::format("{} is empty", what));
  return name;
}

Affine affine_of(const JsonValue& value, std::string_view what) {
  if (value.is(Kind::integer)) return integer_of(value, what, -largest_number);
  if (!value.is(Kind::array) || value.size() != 2) {
    refuse(value,
           fmt::format("{} must be a number or [constant, slope], not {}", what, value.describe()));
  }
  FieldRow row(value, what);
  const std::int64_t constant = integer_of(row.next("constant"), what, -largest_number);
  return {constant, integer_of(row.next("slope"), what, -largest_number)};
}

void expect(const JsonValue& value, Kind kind, std::string_view what) {
  if (value.is(kind)) return;
  refuse(value, fmt::format("{} must be {}, not {}", what,
                            kind == Kind::array ? "a list" : "an object", value.describe()));
}

void refuse_word(const JsonValue& value, std::string_view what,
                 std::span<const std::string_view> words) {
  if (!value.is(Kind::text)) {
    refuse(value, fmt::format("{} must be a text, not {}", what, value.describe()));
  }
  const std::string given = text_of(value, what);
  std::string hint = did_you_mean(given, words);
  if (hint.empty()) hint = fmt::format("there are {}", fmt::join(words, ", "));
  refuse(value, fmt::format("{} cannot be '{}'", what, given), std::move(hint));
}

Members::Members(const JsonValue& object, std::string_view what) : object_(object), what_(what) {
  expect(object, Kind::object, what);
}

JsonValue Members::required(std::string_view key) {
  asked_.push_back(key);
  const auto found = object_.find(key);
  if (!found) refuse(object_, fmt::format("{} lacks '{}'", what_, key));
  return *found;
}

std::optional<JsonValue> Members::find(std::string_view key) {
  asked_.push_back(key);
  auto found = object_.find(key);
  if (found && found->is(Kind::null)) return std::nullopt;
  return found;
}

void Members::finish() const {
  for (auto member = object_.begin(); !(member == object_.end()); ++member) {
    const JsonValue key = *member;
    ++member;
    if (std::ranges::find(asked_, key.text()) != asked_.end()) continue;
    const std::string name = text_of(key, "a member's name");
    refuse(key, fmt::format("{} has no '{}'", what_, name), did_you_mean(name, asked_));
  }
}

FieldRow::FieldRow(const JsonValue& list, std::string_view what)
    : list_(list), what_(what), at_(list.begin()), end_(list.end()) {
  expect(list, Kind::array, what);
}

JsonValue FieldRow::next(std::string_view field) {
  if (at_ == end_) refuse(list_, fmt::format("{} lacks its {}", what_, field));
  const JsonValue value = *at_;
  ++at_;
  return value;
}

std::optional<JsonValue> FieldRow::next_if_any() {
  if (at_ == end_) return std::nullopt;
  return next("");
}

void FieldRow::finish() {
  if (!(at_ == end_)) refuse(*at_, fmt::format("{} has too many fields", what_));
}

}  // namespace stowage
