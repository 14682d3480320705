// WrittenValue: a value as written in a description, an expression or a list of expressions; with
// functions to read it from YAML, evaluate it and convert it to an operator's attribute.
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

/// Which words and names are allowed as a value.
struct ValueRules {
  ExpressionNames names = {};
  std::span<const std::string_view> words = {};  ///< allowed words
  bool any_word = false;                         ///< an unknown name is a word
  bool any_text = false;                         ///< any scalar is taken as text
  bool only_words = false;  ///< only `words`, or a name whose value is one of them
};

/// Null: it is not a value, which was reported. Messages quote `what`.
[[nodiscard]] std::optional<WrittenValue> read_value(const YamlNode& node, std::string_view what,
                                                     const ValueRules& rules, Mistakes& mistakes);
/// Whether the value is the same everywhere in the model.
[[nodiscard]] bool is_constant(const WrittenValue& written);

/// Null: it cannot be evaluated, which was reported.
[[nodiscard]] std::optional<Value> evaluate(const WrittenValue& written, const Environment& at,
                                            Mistakes& mistakes);

/// The value converted to the attribute of `owner`, after checks of kind, bounds, length and
/// choices. One number becomes a list of the attribute's length. Null: it is not allowed, which was
/// reported.
[[nodiscard]] std::optional<AttributeValue> to_attribute(const AttributeSpec& spec,
                                                         std::string_view owner, const Value& value,
                                                         const WrittenValue& written,
                                                         Mistakes& mistakes);

/// A constant integer from `minimum` to `maximum`; null: it is none, which was reported.
[[nodiscard]] std::optional<std::int64_t> to_integer(std::string_view what, std::int64_t minimum,
                                                     std::int64_t maximum, const Value& value,
                                                     const Mark& mark, Mistakes& mistakes);
/// A boolean, or an integer, of which 0 is false.
[[nodiscard]] std::optional<bool> to_condition(std::string_view what, const Value& value,
                                               const Mark& mark, Mistakes& mistakes);

}  // namespace stowage
