#include "estimator/model/written_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "estimator/base/name_match.hpp"

namespace stowage {

namespace {

Mark mark_within(const Mark& mark, const ExpressionError& error) {
  return {mark.line, mark.column + error.offset, error.length};
}

bool contains(std::span<const std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// A fast path for most values: digits that surely fit and are no octal number.
std::optional<std::int64_t> plain_number(std::string_view text) {
  constexpr std::size_t most_digits = 18;
  if (text.empty() || text.size() > most_digits || (text[0] == '0' && text.size() > 1)) return {};
  std::int64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return {};
    number = 10 * number + (c - '0');
  }
  return number;
}

/// YAML's infinity, as its core schema writes it.
std::optional<double> infinite_number(std::string_view text) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text != ".inf" && text != ".Inf" && text != ".INF") return std::nullopt;
  return negative ? -infinity : infinity;
}

std::optional<Expression> read_scalar(const YamlNode& node, std::string_view what,
                                      const ValueRules& rules, Mistakes& mistakes) {
  if (!node.is_scalar()) {
    const bool nothing = node.kind == YamlNode::Kind::null;
    mistakes.error(node.mark, nothing ? fmt::format("'{}' has no value", what)
                                      : fmt::format("'{}' takes a single value here, not {}", what,
                                                    describe(node)));
    return std::nullopt;
  }
  if (node.quoted || rules.any_text || contains(rules.words, node.text)) {
    return Expression::constant({node.text});
  }
  if (const auto number = plain_number(node.text)) return Expression::constant({Affine(*number)});
  if (const auto number = infinite_number(node.text)) return Expression::constant({*number});
  auto parsed = parse_expression(node.text, rules.names);
  if (parsed) return std::move(*parsed);
  if (rules.any_word && is_layer_name(node.text)) return Expression::constant({node.text});
  if (rules.only_words) {
    mistakes.error(
        node.mark,
        fmt::format("'{}' takes {}, not '{}'", what, alternatives(rules.words), node.text),
        did_you_mean(node.text, rules.words));
    return std::nullopt;
  }
  ExpressionError error = std::move(parsed.error());
  if (error.hint.empty() && !rules.words.empty()) error.hint = did_you_mean(node.text, rules.words);
  mistakes.error(mark_within(node.mark, error), std::move(error.message), std::move(error.hint));
  return std::nullopt;
}

std::string bounds(const AttributeSpec& spec) {
  if (spec.minimum && spec.maximum) {
    if (std::isinf(*spec.minimum) && std::isinf(*spec.maximum)) return ", .inf or -.inf";
    return fmt::format(" between {} and {}", *spec.minimum, *spec.maximum);
  }
  if (spec.minimum && std::isinf(*spec.minimum)) return " or -.inf";
  if (spec.maximum && std::isinf(*spec.maximum)) return " or .inf";
  if (spec.minimum) return fmt::format(" of at least {}", *spec.minimum);
  if (spec.maximum) return fmt::format(" of at most {}", *spec.maximum);
  return "";
}

std::string expectation(const AttributeSpec& spec) {
  switch (spec.type) {
    case AttributeType::integer:
      return "an integer" + bounds(spec);
    case AttributeType::integers: {
      std::string text =
          spec.length == 0 ? fmt::format("a list of integers{}", bounds(spec))
                           : fmt::format("an integer{} or a list of {}", bounds(spec), spec.length);
      if (spec.other_length != 0) text += fmt::format(" or {}", spec.other_length);
      if (!spec.choices.empty()) text += fmt::format(" or {}", alternatives(spec.choices));
      return text;
    }
    case AttributeType::dimensions:
      return "a list of sizes" + bounds(spec);
    case AttributeType::real:
      return "a number" + bounds(spec);
    case AttributeType::boolean:
      return "true or false";
    case AttributeType::choice:
      return alternatives(spec.choices);
    case AttributeType::text:
      return "a text";
  }
  return "";
}

// The conversions of one attribute; each returns nullopt for a value that is not allowed.
class AttributeConversion {
 public:
  explicit AttributeConversion(const AttributeSpec& spec) : spec_(spec) {}

  std::optional<AttributeValue> convert(const Value& value) {
    switch (spec_.type) {
      case AttributeType::integer:
        return widen(integer(value));
      case AttributeType::integers:
        return integers(value);
      case AttributeType::dimensions:
        return dimensions(value);
      case AttributeType::real:
        return widen(real(value));
      case AttributeType::boolean:
        return value.boolean() ? std::optional<AttributeValue>(*value.boolean()) : std::nullopt;
      case AttributeType::choice:
        return word(value);
      case AttributeType::text:
        return value.word() ? std::optional<AttributeValue>(*value.word()) : std::nullopt;
    }
    return std::nullopt;
  }

  [[nodiscard]] int blamed_item() const { return blamed_; }

 private:
  template <typename T>
  static std::optional<AttributeValue> widen(const std::optional<T>& value) {
    return value ? std::optional<AttributeValue>(*value) : std::nullopt;
  }

  [[nodiscard]] bool within_bounds(double number) const {
    return (!spec_.minimum || number >= *spec_.minimum) &&
           (!spec_.maximum || number <= *spec_.maximum);
  }

  [[nodiscard]] std::optional<std::int64_t> integer(const Value& value) const {
    const Affine* affine = value.affine();
    if (affine == nullptr || !affine->is_constant()) return std::nullopt;
    if (!within_bounds(static_cast<double>(affine->constant))) return std::nullopt;
    return affine->constant;
  }

  [[nodiscard]] std::optional<double> real(const Value& value) const {
    double number = 0;
    if (value.real() != nullptr) {
      number = *value.real();
    } else if (value.affine() != nullptr && value.affine()->is_constant()) {
      number = static_cast<double>(value.affine()->constant);
    } else {
      return std::nullopt;
    }
    if (std::isinf(number)) {
      const std::optional<double>& bound = number < 0 ? spec_.minimum : spec_.maximum;
      return bound == number ? bound : std::nullopt;
    }
    return within_bounds(number) ? std::optional(number) : std::nullopt;
  }

  [[nodiscard]] std::optional<AttributeValue> word(const Value& value) const {
    if (value.word() == nullptr || !contains(spec_.choices, *value.word())) return std::nullopt;
    return *value.word();
  }

  std::optional<AttributeValue> integers(const Value& value) {
    if (value.word() != nullptr) return word(value);
    if (value.list() == nullptr) {
      const auto number = integer(value);
      if (!number) return std::nullopt;
      return std::vector<std::int64_t>(static_cast<std::size_t>(std::max(spec_.length, 1)),
                                       *number);
    }
    const std::vector<Value>& items = *value.list();
    const auto count = static_cast<int>(items.size());
    const bool suits =
        count == spec_.length || (spec_.other_length != 0 && count == spec_.other_length);
    if (spec_.length != 0 && !suits) return std::nullopt;
    std::vector<std::int64_t> numbers;
    numbers.reserve(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto number = integer(items[i]);
      if (!number) {
        blamed_ = static_cast<int>(i);
        return std::nullopt;
      }
      numbers.push_back(*number);
    }
    return numbers;
  }

  std::optional<AttributeValue> dimensions(const Value& value) {
    if (value.list() == nullptr) return std::nullopt;
    Shape shape;
    shape.reserve(value.list()->size());
    for (std::size_t i = 0; i < value.list()->size(); ++i) {
      const Affine* size = (*value.list())[i].affine();
      const bool suits =
          size != nullptr &&
          (!size->is_constant() ? size->slope > 0 : integer(Value{*size}).has_value());
      if (!suits) {
        blamed_ = static_cast<int>(i);
        return std::nullopt;
      }
      shape.push_back(*size);
    }
    return shape;
  }

  const AttributeSpec& spec_;
  int blamed_ = -1;
};

}  // namespace

std::optional<WrittenValue> read_value(const YamlNode& node, std::string_view what,
                                       const ValueRules& rules, Mistakes& mistakes) {
  WrittenValue written{.mark = node.mark, .is_list = node.is_sequence()};
  if (!written.is_list) {
    auto item = read_scalar(node, what, rules, mistakes);
    if (!item) return std::nullopt;
    written.items.push_back(std::move(*item));
    written.marks.push_back(node.mark);
    return written;
  }
  bool sound = true;
  for (const YamlNode* child : node.items) {
    auto item = read_scalar(*child, what, rules, mistakes);
    if (!item) {
      sound = false;
      continue;
    }
    written.items.push_back(std::move(*item));
    written.marks.push_back(child->mark);
  }
  return sound ? std::optional(std::move(written)) : std::nullopt;
}

bool is_constant(const WrittenValue& written) {
  return std::all_of(written.items.begin(), written.items.end(),
                     [](const Expression& item) { return item.is_constant(); });
}

std::optional<Value> evaluate(const WrittenValue& written, const Environment& at,
                              Mistakes& mistakes) {
  std::vector<Value> values;
  for (std::size_t i = 0; i < written.items.size(); ++i) {
    auto value = written.items[i].evaluate(at);
    if (!value) {
      ExpressionError& error = value.error();
      mistakes.error_once(mark_within(written.marks[i], error), std::move(error.message),
                          std::move(error.hint));
      return std::nullopt;
    }
    if (!written.is_list) return std::move(*value);
    values.push_back(std::move(*value));
  }
  return Value{std::move(values)};
}

std::optional<AttributeValue> to_attribute(const AttributeSpec& spec, std::string_view owner,
                                           const Value& value, const WrittenValue& written,
                                           Mistakes& mistakes) {
  AttributeConversion conversion(spec);
  if (auto attribute = conversion.convert(value)) return attribute;
  const int item = conversion.blamed_item();
  const bool in_list = item >= 0 && written.is_list;
  std::string found = describe(item >= 0 ? (*value.list())[static_cast<std::size_t>(item)] : value);
  mistakes.error_once(
      in_list ? written.marks[static_cast<std::size_t>(item)] : written.mark,
      fmt::format("'{}' of {} takes {}, not {}", spec.name, owner, expectation(spec), found),
      value.word() ? did_you_mean(*value.word(), spec.choices) : "");
  return std::nullopt;
}

std::optional<std::int64_t> to_integer(std::string_view what, std::int64_t minimum,
                                       std::int64_t maximum, const Value& value, const Mark& mark,
                                       Mistakes& mistakes) {
  const Affine* affine = value.affine();
  if (affine != nullptr && affine->is_constant() && affine->constant >= minimum &&
      affine->constant <= maximum) {
    return affine->constant;
  }
  mistakes.error_once(mark, fmt::format("'{}' takes an integer between {} and {}, not {}", what,
                                        minimum, maximum, describe(value)));
  return std::nullopt;
}

std::optional<bool> to_condition(std::string_view what, const Value& value, const Mark& mark,
                                 Mistakes& mistakes) {
  if (value.boolean() != nullptr) return *value.boolean();
  if (value.affine() != nullptr && value.affine()->is_constant()) {
    return value.affine()->constant != 0;
  }
  mistakes.error_once(mark, fmt::format("'{}' takes a condition, not {}", what, describe(value)));
  return std::nullopt;
}

}  // namespace stowage
