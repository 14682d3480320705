// Typed access to JSON values for this room's readers: a number in its range, a word of a list, a
// member by name.
//
// A mistake ends the reading: it is thrown as a Refusal, which read_step catches and returns as an
// error. Collecting more mistakes would not help, as a file written by a program has the same one
// many times.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/affine.hpp"
#include "estimator/document/json_tree.hpp"

namespace stowage {

struct Refusal {
  Diagnostics diagnostics;
};
[[noreturn]] void refuse(const JsonValue& at, std::string message, std::string hint = {});

/// Larger sizes and extents are refused, so that sums of them stay within 64 bits.
inline constexpr std::int64_t largest_number = std::int64_t{1} << 60;
inline constexpr std::size_t longest_recorded_name = 4096;  ///< bytes

// `what` names the value in messages: "a node's phase".
[[nodiscard]] std::int64_t integer_of(const JsonValue& value, std::string_view what,
                                      std::int64_t least = 0, std::int64_t most = largest_number);
[[nodiscard]] double real_of(const JsonValue& value, std::string_view what);
[[nodiscard]] bool boolean_of(const JsonValue& value, std::string_view what);
/// A text without control characters, of at most longest_recorded_name bytes.
[[nodiscard]] std::string text_of(const JsonValue& value, std::string_view what);
/// As text_of, and the text must not be empty.
[[nodiscard]] std::string name_of(const JsonValue& value, std::string_view what);
/// A size: a number, or [constant, slope] in the batch.
[[nodiscard]] Affine affine_of(const JsonValue& value, std::string_view what);
void expect(const JsonValue& value, JsonValue::Kind kind, std::string_view what);
[[noreturn]] void refuse_word(const JsonValue& value, std::string_view what,
                              std::span<const std::string_view> words);

/// The one of `values` whose to_string is the word.
template <typename Values>
[[nodiscard]] auto choice_of(const JsonValue& value, std::string_view what, const Values& values) {
  if (value.is(JsonValue::Kind::text)) {
    const std::string_view text = value.text();
    for (const auto candidate : values) {
      if (to_string(candidate) == text) return candidate;
    }
  }
  std::vector<std::string_view> words;
  for (const auto candidate : values) words.push_back(to_string(candidate));
  refuse_word(value, what, words);
}

/// The members of an object, asked for by name. finish() refuses members that were not asked for.
class Members {
 public:
  Members(const JsonValue& object, std::string_view what);
  [[nodiscard]] JsonValue required(std::string_view key);
  /// None: it is missing or null.
  [[nodiscard]] std::optional<JsonValue> find(std::string_view key);
  void finish() const;
  [[nodiscard]] const JsonValue& value() const { return object_; }

 private:
  JsonValue object_;
  std::string what_;
  std::vector<std::string_view> asked_;
};

/// A list whose elements are fields in a fixed order.
class FieldRow {
 public:
  FieldRow(const JsonValue& list, std::string_view what);
  [[nodiscard]] JsonValue next(std::string_view field);
  /// None: there is no further element.
  [[nodiscard]] std::optional<JsonValue> next_if_any();
  void finish();

 private:
  JsonValue list_;
  std::string_view what_;
  JsonValue::Iterator at_, end_;
};

}  // namespace stowage
