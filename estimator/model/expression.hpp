// Expression: the language of numbers in a description.
//
//   4 * hidden      (size - 1) // 2      stride != 1 or index == 0      batch * seq
//
// Lowest to highest: a if b else c, or, and, not, comparisons (== != < <= > >=, one at a time), +
// -, * / // %, unary -. Integers are 64 bits and checked; `/` of integers is exact or an error,
// `//` and `%` round towards minus infinity. `batch` stays a symbol: it may be added, and
// multiplied and divided by what does not depend on it, but not compared. Names are resolved when
// the text is parsed, so that evaluation needs only array look-ups, and a misspelt name is reported
// even in an unused block.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "estimator/base/affine.hpp"

namespace stowage {

/// The value of an argument or expression. An integer is a constant Affine.
struct Value {
  std::variant<Affine, double, bool, std::string, std::vector<Value>> of = Affine(0);
  bool operator==(const Value&) const = default;

  [[nodiscard]] const Affine* affine() const { return std::get_if<Affine>(&of); }
  [[nodiscard]] const double* real() const { return std::get_if<double>(&of); }
  [[nodiscard]] const bool* boolean() const { return std::get_if<bool>(&of); }
  [[nodiscard]] const std::string* word() const { return std::get_if<std::string>(&of); }
  [[nodiscard]] const std::vector<Value>* list() const {
    return std::get_if<std::vector<Value>>(&of);
  }
};

[[nodiscard]] std::string to_string(const Value& value);
/// The value with its kind, for messages: "the number 3", "the word 'same'", "the list [3, 3]",
/// "true".
[[nodiscard]] std::string describe(const Value& value);

/// A mistake in an expression's text: `offset` and `length` in bytes.
struct ExpressionError {
  int offset = 0;
  int length = 1;
  std::string message;
  std::string hint = {};
};

/// The names that an expression may use, in the order of the values at evaluation.
struct ExpressionNames {
  std::span<const std::string> block = {};  ///< the block's arguments, which hide the model's
  std::span<const std::string> model = {};  ///< the model's arguments and symbols
  bool has_batch = true;
  bool has_index = true;
};

/// The values of the names, for evaluation.
struct Environment {
  std::span<const Value> block = {};
  std::span<const Value> model = {};
  std::int64_t index = 0;  ///< index of the innermost repetition
};

class Expression {
 public:
  enum class Operator {
    literal,
    block_name,
    model_name,
    batch,
    index,  // leaves
    negate,
    logical_not,  // one operand
    add,
    subtract,
    multiply,
    divide,
    floor_divide,
    modulo,  // two
    equal,
    unequal,
    less,
    less_equal,
    greater,
    greater_equal,
    logical_and,
    logical_or,
    choose,  // three: left if condition else right
  };
  struct Node {
    Operator op = Operator::literal;
    int left = -1, right = -1,
        condition = -1;  ///< operands, indices of nodes; a name's number is `left`
    int offset = 0, length = 1;
    Value literal = {};
  };

  Expression() = default;
  explicit Expression(std::vector<Node> nodes) : nodes_(std::move(nodes)) {}
  [[nodiscard]] static Expression constant(Value value);

  [[nodiscard]] tl::expected<Value, ExpressionError> evaluate(const Environment& at) const;
  /// Whether it uses neither a block's argument nor the index, so that its value is the same
  /// everywhere in the model.
  [[nodiscard]] bool is_constant() const;

 private:
  std::vector<Node> nodes_;  ///< the last is the root
};

[[nodiscard]] tl::expected<Expression, ExpressionError> parse_expression(
    std::string_view text, const ExpressionNames& names);

/// In characters. Limited because each repetition of a layer has a copy of its name.
inline constexpr std::size_t longest_name = 256;

/// Whether the text is a valid name: a letter or '_', then letters, digits, '_' and '-'. Arguments
/// and symbols may not contain '-', which would be a subtraction.
[[nodiscard]] bool is_layer_name(std::string_view text);
[[nodiscard]] bool is_symbol_name(std::string_view text);
/// A hint that says which rule of layer names the text breaks.
[[nodiscard]] std::string layer_name_hint(std::string_view text);

}  // namespace stowage
