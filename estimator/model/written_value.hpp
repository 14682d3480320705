// WrittenValue: a value as it stands in a description (an expression, or a list of them), read from
// YAML, evaluated, and checked against what an operator's attribute takes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/attributes.hpp"
#include "estimator/model/expression.hpp"
#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

struct WrittenValue {
  Mark mark;
  bool is_list = false;
  std::vector<Expression> items;  ///< one where it is not a list
  std::vector<Mark> marks;        ///< of each item
};

/// What may stand as a value.
struct ValueRules {
  ExpressionNames names = {};
  std::span<const std::string_view> words = {};  ///< words that are taken as such
  bool any_word = false;                         ///< an unknown name is a word
  bool any_text = false;                         ///< whatever is written is a text
  bool only_words = false;  ///< `words` is all there is, besides a name that is bound to one
};

/// Null where it is not a value; that has been reported. `what` is quoted in the messages.
[[nodiscard]] std::optional<WrittenValue> read_value(const YamlNode& node, std::string_view what,
                                                     const ValueRules& rules, Mistakes& mistakes);
/// True where the value is the same in the whole model.
[[nodiscard]] bool is_constant(const WrittenValue& written);

/// Null where it has no value; that has been reported.
[[nodiscard]] std::optional<Value> evaluate(const WrittenValue& written, const Environment& at,
                                            Mistakes& mistakes);

/// The value as an attribute of `owner` takes it: kind, bounds, length, choices. One number becomes
/// a list of the attribute's length. Null where it does not suit; that has been reported.
[[nodiscard]] std::optional<AttributeValue> to_attribute(const AttributeSpec& spec,
                                                         std::string_view owner, const Value& value,
                                                         const WrittenValue& written,
                                                         Mistakes& mistakes);

/// A constant integer of at least `minimum`; null where it is none, which has been reported.
[[nodiscard]] std::optional<std::int64_t> to_integer(std::string_view what, std::int64_t minimum,
                                                     std::int64_t maximum, const Value& value,
                                                     const Mark& mark, Mistakes& mistakes);
/// A boolean or an integer, 0 being false.
[[nodiscard]] std::optional<bool> to_condition(std::string_view what, const Value& value,
                                               const Mark& mark, Mistakes& mistakes);

/// "'a'", "'a' or 'b'", "'a', 'b' or 'c'".
[[nodiscard]] std::string alternatives(std::span<const std::string_view> words);

}  // namespace stowage
